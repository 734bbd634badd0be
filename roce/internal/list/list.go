package list

// A Link is what a member holds of the list that it is in. The zero value is in none.
type Link[T any] struct {
	prev, next *Link[T]
	in         *List[T]
	of         *T
}

// In reports whether the member is in a list.
func (k *Link[T]) In() bool { return k.in != nil }

// Next is the member behind it, nil when it is the last one or in no list.
func (k *Link[T]) Next() *T {
	if k.next == nil {
		return nil
	}
	return k.next.of
}

// A List is in the order of arrival. The zero value is empty.
type List[T any] struct {
	first, last *Link[T]
	n           int
}

// Len is how many members it has.
func (l *List[T]) Len() int { return l.n }

// First is the member that has been in it for longest, nil when it is empty.
func (l *List[T]) First() *T {
	if l.first == nil {
		return nil
	}
	return l.first.of
}

// Push adds a member at the end, by its link. It does nothing when that is in a list already.
func (l *List[T]) Push(k *Link[T], of *T) {
	if k.in != nil {
		return
	}
	*k = Link[T]{prev: l.last, in: l, of: of}
	if l.last != nil {
		l.last.next = k
	} else {
		l.first = k
	}
	l.last = k
	l.n++
}

// Remove takes a member out, and reports whether it was in this list.
func (l *List[T]) Remove(k *Link[T]) bool {
	if k.in != l {
		return false
	}
	if k.prev != nil {
		k.prev.next = k.next
	} else {
		l.first = k.next
	}
	if k.next != nil {
		k.next.prev = k.prev
	} else {
		l.last = k.prev
	}
	*k = Link[T]{}
	l.n--
	return true
}

// Pop takes the first member out and returns it, nil when there is none.
func (l *List[T]) Pop() *T {
	if l.first == nil {
		return nil
	}
	of := l.first.of
	l.Remove(l.first)
	return of
}
