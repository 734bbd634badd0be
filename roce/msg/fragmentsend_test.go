package msg

import "testing"

// TestFragmentsEndEarly: the peer lets a message come in fragments, gives no slot free, and says
// that it has enough. The message comes back, nothing of it is sent later, and another message
// that is being written goes on.
func TestFragmentsEndEarly(t *testing.T) {
	l := newLiar(t, Config{Protocol: Put, LargeSlots: 1, Large: []int{}})
	put := &Send{Pieces: [][]byte{make([]byte, 200_000)}}
	must(t, l.c.Send(l.now, put))
	s := &Send{Pieces: [][]byte{make([]byte, 200_000)}}
	must(t, l.c.Send(l.now, s))
	l.settle()
	e := l.c.endpoint
	l.control(Control{Type: TypeCTS, ID: s.id, Len: 200_000})
	l.settle()
	if l.c.fragments.Len() != 1 || s.off == 0 || s.off == s.length {
		t.Fatalf("%d bytes of fragments are sent, %d wait", s.off, l.c.fragments.Len())
	}
	l.control(Control{Type: TypeRTR, ID: put.id, Len: 200_000, Addr: 1 << 40})
	l.control(Control{Type: TypeATS, ID: s.id, Len: 1000})
	if l.c.fragments.Len() != 0 || l.c.puts.Len() != 1 {
		t.Fatalf("%d messages in fragments, %d written", l.c.fragments.Len(), l.c.puts.Len())
	}
	sent := s.off
	l.settle()
	if got := e.NextSent(); got != s || s.Sent != 1000 || s.Err != nil {
		t.Fatalf("%v comes back: %v", got, s.Err)
	}
	l.control(Control{Type: TypeCredit, Released: uint32(l.c.lanes[small].ring.slots)})
	l.settle()
	if s.off != sent || l.c.over() {
		t.Errorf("%d bytes are sent after the end: %v", s.off-sent, l.c.Err())
	}
}
