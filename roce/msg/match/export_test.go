package match

// Check reports what is wrong inside a matcher that says what it should: that its
// lists, tables and counts agree.
func (x *Matcher[R, M]) Check(peers ...*Peer[R, M]) string {
	receives, exact, messages := 0, 0, 0
	for _, s := range append(peers, &x.any) {
		n, bytes := 0, uint64(0)
		for p := s.unexpected.head; p != nil; p = p.next {
			n, bytes = n+1, bytes+uint64(p.of.bytes)
		}
		if n != s.messages || bytes != s.bytes {
			return "messages or bytes are counted wrong"
		}
		messages += n
		exact += s.exact.length()
		receives += s.exact.length() + s.masked.length()
	}
	switch {
	case receives != x.queued:
		return "receives are counted wrong"
	case exact != x.receives.length():
		return "table and lists of receives differ"
	case messages != x.messages.length():
		return "table and lists of messages differ"
	}
	return ""
}

// Buckets is the size of both tables.
func (x *Matcher[R, M]) Buckets() int { return len(x.receives.buckets) + len(x.messages.buckets) }

// HideMessages cuts the list of all messages behind the first one, until the function
// that it returns is called.
func (x *Matcher[R, M]) HideMessages() (restore func()) {
	first := x.any.unexpected.head
	rest := first.next
	first.next = nil
	return func() { first.next = rest }
}

// Loose reports whether a receive points to no other one.
func (r *Receive[R, M]) Loose() bool { return r.place.loose() }

// Loose reports whether a message points to no other one.
func (m *Message[R, M]) Loose() bool { return m.places[0].loose() && m.places[1].loose() }

func (l *list[T]) length() (n int) {
	for p := l.head; p != nil; p = p.next {
		n++
	}
	return n
}

func (t *table[T]) length() (n int) {
	for _, p := range t.buckets {
		for ; p != nil; p = p.chain {
			n++
			for q := p.after; q != p; q = q.after {
				n++
			}
		}
	}
	return n
}
