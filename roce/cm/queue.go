package cm

// A link is what a member of a queue holds of it.
type link[T any] struct {
	prev, next T
	in         bool
}

// linked is a pointer type that has a link.
type linked[T any] interface {
	comparable
	links() *link[T]
}

// A queue is a list in the order of arrival, from which any member can leave.
type queue[T linked[T]] struct {
	first, last T
	n           int
}

// push adds one at the end.
func (q *queue[T]) push(x T) {
	var none T
	*x.links() = link[T]{prev: q.last, in: true}
	if q.last != none {
		q.last.links().next = x
	} else {
		q.first = x
	}
	q.last = x
	q.n++
}

// remove takes one out, if it is in.
func (q *queue[T]) remove(x T) {
	l := x.links()
	if !l.in {
		return
	}
	var none T
	if l.prev != none {
		l.prev.links().next = l.next
	} else {
		q.first = l.next
	}
	if l.next != none {
		l.next.links().prev = l.prev
	} else {
		q.last = l.prev
	}
	*l = link[T]{}
	q.n--
}
