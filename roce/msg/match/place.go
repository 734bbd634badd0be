package match

// A key is what a table finds: a tag within a scope, which is the number of a peer, or
// that of any.
type key struct{ scope, tag uint64 }

// A place is that of a receive or message, a T, in one list and in one table. A receive
// has one place and a message two: one among those of its peer, one among all.
type place[T any] struct {
	of  *T
	key key

	next, prev *place[T] // in the list

	// In the table. Places of the same key are a ring in the order in which they came;
	// the first of them stands in the bucket for all.
	hash          uint64
	after, before *place[T]
	chain         *place[T] // the first of another key in the bucket
	first         bool
}

// follow puts a place at the end of the ring that begins with first.
func (p *place[T]) follow(first *place[T]) {
	p.first = false
	p.after, p.before = first, first.before
	first.before.after, first.before = p, p
}

// A list has places in the order in which they came.
type list[T any] struct{ head, tail *place[T] }

// push puts a place at the end.
func (l *list[T]) push(p *place[T]) {
	p.next, p.prev = nil, l.tail
	if l.tail == nil {
		l.head = p
	} else {
		l.tail.next = p
	}
	l.tail = p
}

// remove takes a place out, which is in.
func (l *list[T]) remove(p *place[T]) {
	if p.prev == nil {
		l.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.next, p.prev = nil, nil
}
