package msg

import "testing"

// TestManyWantToBeMatched: a frame of a large slot may have ten thousand messages that want to be
// told of, and that is no flood: what one end has to say of them waits in the slots of the other.
func TestManyWantToBeMatched(t *testing.T) {
	d := newDuo(t, Config{Large: []int{MaxLarge}, LargeSlots: 4})
	d.send(pattern(1, MaxLarge)) // which has large slots made
	const messages = 30_000
	sends, receives := make([]Send, messages), make([]Receive, messages)
	for i := range receives {
		must(t, d.b.endpoint.Receive(d.now, &receives[i]))
	}
	for i := range sends {
		sends[i].Level, sends[i].Tag = Matched, uint64(i)
		must(t, d.ca.Send(d.now, &sends[i]))
	}
	for d.step() {
		if n := d.cb.out.n; n > 2*maxReplies {
			t.Fatalf("%d control messages wait to be sent", n)
		}
	}
	for i := range sends {
		if s := d.a.endpoint.NextSent(); s != &sends[i] || s.Err != nil {
			t.Fatalf("message %d: %v, %v, %v", i, s == &sends[i], d.ca.err, d.cb.err)
		}
		if r := d.b.endpoint.NextReceived(); r != &receives[i] || r.SentTag != uint64(i) {
			t.Fatalf("receive %d", i)
		}
	}
}

// TestAnnouncementsAreBounded: a peer that announces more messages than it may have open is cut
// off, also while nobody looks at them.
func TestAnnouncementsAreBounded(t *testing.T) {
	l := newLiar(t, Config{Slots: 4, Rendezvous: 4, Unexpected: 1})
	for i := range 3 { // the second one stays in its slot
		l.frame(l.c.in[0], RecordHeader{Type: RecordEager, Len: 8, Tag: uint64(i)})
	}
	for id := range uint32(100) {
		if l.c.arrivals.n > 3+4 {
			t.Fatalf("%d frames and announcements wait", l.c.arrivals.n)
		}
		l.control(Control{Type: TypeRTS, ID: id, Len: 1})
	}
	if err := l.c.Err(); err == nil {
		t.Error("it goes on")
	}
}
