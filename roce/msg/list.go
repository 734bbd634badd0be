package msg

// A link is what a member of a list holds of it.
type link[T any] struct {
	prev, next T
	in         bool
}

// linked is a pointer type that has a link.
type linked[T any] interface {
	comparable
	chain() *link[T]
}

// A list is in the order of arrival, and any member can leave. The zero value is empty.
type list[T linked[T]] struct {
	first, last T
	n           int
}

// push adds one at the end, unless it is in already.
func (l *list[T]) push(x T) {
	var none T
	c := x.chain()
	if c.in {
		return
	}
	*c = link[T]{prev: l.last, in: true}
	if l.last != none {
		l.last.chain().next = x
	} else {
		l.first = x
	}
	l.last = x
	l.n++
}

// remove takes one out, if it is in.
func (l *list[T]) remove(x T) {
	c := x.chain()
	if !c.in {
		return
	}
	var none T
	if c.prev != none {
		c.prev.chain().next = c.next
	} else {
		l.first = c.next
	}
	if c.next != none {
		c.next.chain().prev = c.prev
	} else {
		l.last = c.prev
	}
	*c = link[T]{}
	l.n--
}

// pop takes the first one out. There is none when it returns the zero value.
func (l *list[T]) pop() T {
	x := l.first
	var none T
	if x != none {
		l.remove(x)
	}
	return x
}
