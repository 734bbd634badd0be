package msg

import (
	"errors"
	"testing"

	"xroce/roce/verbs"
)

// TestSlotIsWrittenAgainBehindItsCompletion: the peer has given a slot back, but the work request
// that wrote to it is not complete. Its packets may be sent again, from our copy, so that does not
// change before.
func TestSlotIsWrittenAgainBehindItsCompletion(t *testing.T) {
	l := newLiar(t, Config{})
	e := l.c.endpoint
	slots := l.c.lanes[small].ring.slots
	l.c.depth = slots + 2
	posted := 0
	pump := func() {
		var wr verbs.SendWR
		for e.NextWork(l.now, &wr) != nil {
			posted++
		}
	}
	for range slots {
		must(t, l.c.Send(l.now, &Send{Pieces: [][]byte{make([]byte, 1024)}}))
		pump()
	}
	must(t, l.c.Send(l.now, &Send{Pieces: [][]byte{make([]byte, 1024)}}))
	if pump(); posted != slots {
		t.Fatalf("%d of %d slots are written", posted, slots)
	}
	l.control(Control{Type: TypeCredit, Released: uint32(slots)})
	if pump(); posted != slots {
		t.Fatalf("a slot is written again, whose work request is not complete")
	}
	e.HandleWork(l.now, l.c, &verbs.Completion{})
	if pump(); posted != slots+1 {
		t.Fatalf("%d slots are written", posted)
	}
}

// TestPullWindowStopsReadsOnly: a connection whose READs wait for those of others sends all else
// meanwhile, and goes on with them later.
func TestPullWindowStopsReadsOnly(t *testing.T) {
	w := newWorld(t, 1)
	hub := w.node(Config{PullWindow: 1000, Chunk: 1000, Protocol: Get})
	var ends []*Conn
	for range 2 {
		_, c := w.join(w.node(Config{Protocol: Get}), hub, allCapabilities)
		ends = append(ends, c)
	}
	w.settle()
	for _, c := range ends {
		peer := c.User.(*pipe).peer.conn
		must(t, peer.Send(w.now, &Send{Pieces: [][]byte{make([]byte, 5000)}}))
		must(t, hub.endpoint.Receive(w.now, &Receive{Pieces: [][]byte{make([]byte, 5000)}}))
	}
	var reader *Conn // whose READ is never answered
	w.hold = func(c *Conn, wr *verbs.SendWR) bool {
		if wr.Opcode == verbs.OpRead && reader == nil {
			reader = c
		}
		return wr.Opcode == verbs.OpRead && c == reader
	}
	w.settle()
	for _, c := range ends {
		if c == reader {
			continue
		}
		if !c.throttled {
			t.Fatal("the other one does not wait")
		}
		s := &Send{Pieces: [][]byte{make([]byte, 10)}, Protocol: Eager, Level: Transmitted}
		must(t, c.Send(w.now, s))
		w.settle()
		if hub.endpoint.NextSent() != s || s.Err != nil {
			t.Errorf("a small message waits for READs of others")
		}
	}
	reader.Abort(w.now, errHungUp)
	w.settle()
	got := 0
	for r := hub.endpoint.NextReceived(); r != nil; r = hub.endpoint.NextReceived() {
		if r.Err == nil {
			got++
		}
	}
	if got != 1 {
		t.Errorf("%d messages came", got)
	}
}

// TestCloseWaitsForReceives: an end that closes is told that it is over when all of its messages
// were taken out, not when they lie in slots of a peer whose program is slow: those would be lost.
func TestCloseWaitsForReceives(t *testing.T) {
	d := newDuo(t, Config{Unexpected: 1, Slots: 32})
	for range 3 {
		must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{make([]byte, 1000)}}))
	}
	d.ca.Close(d.now)
	d.cb.Close(d.now)
	d.settle()
	if d.ca.Err() != nil || d.cb.Err() != nil {
		t.Fatal("closed with messages that nobody received")
	}
	for range 3 {
		r := &Receive{Pieces: [][]byte{make([]byte, 1000)}}
		must(t, d.b.endpoint.Receive(d.now, r))
	}
	d.settle()
	for _, c := range []*Conn{d.ca, d.cb} {
		if !errors.Is(c.Err(), ErrClosed) {
			t.Errorf("closed: %v", c.Err())
		}
	}
	d.nothingLeft()
}

// TestFullFrameLeavesAtOnce: a frame that has no room waits for no completion.
func TestFullFrameLeavesAtOnce(t *testing.T) {
	l := newLiar(t, Config{})
	for range 5 {
		must(t, l.c.Send(l.now, &Send{Pieces: [][]byte{make([]byte, 1024)}}))
	}
	must(t, l.c.Send(l.now, &Send{Pieces: [][]byte{make([]byte, 10)}}))
	frames := 0
	for wr := (verbs.SendWR{}); l.c.endpoint.NextWork(l.now, &wr) != nil; {
		frames++
	}
	if frames != 5 {
		t.Errorf("%d frames leave", frames)
	}
}
