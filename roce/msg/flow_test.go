package msg

import (
	"bytes"
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
	l.c.First().depth = slots + 2
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
	e.HandleWork(l.now, l.c.First(), &verbs.Completion{})
	if pump(); posted != slots+1 {
		t.Fatalf("%d slots are written", posted)
	}
}

// TestSlowPeerLeavesThePullWindow: READs of one peer are never answered. It has half of the window
// and no more, sends all else meanwhile, and of the others each comes to its messages.
func TestSlowPeerLeavesThePullWindow(t *testing.T) {
	const window, size = 64 << 10, 100_000
	w := newWorld(t, 1)
	hub := w.node(Config{PullWindow: window, Chunk: 8 << 10, Protocol: Get})
	var ends []*Conn
	for range 4 {
		_, c := w.join(w.node(Config{Protocol: Get}), hub, allCapabilities)
		ends = append(ends, c)
	}
	w.settle()
	slow := ends[0]
	w.hold = func(c *Conn, wr *verbs.SendWR) bool { return wr.Opcode == verbs.OpRead && c == slow }
	for i, c := range ends {
		peer := c.User.(*pipe).peer.conn
		must(t, peer.Send(w.now, &Send{Pieces: [][]byte{pattern(i, size)}}))
		r := &Receive{Pieces: [][]byte{make([]byte, size)}, From: c}
		must(t, hub.endpoint.Receive(w.now, r))
		if w.settle(); c == slow {
			if !c.throttled || c.pulling < window/2-leastRead || c.pulling > window/2 {
				t.Errorf("it reads %d bytes, throttled %v", c.pulling, c.throttled)
			}
			continue
		}
		if hub.endpoint.NextReceived() != r || !bytes.Equal(r.Pieces[0], pattern(i, size)) {
			t.Errorf("the message of peer %d waits: %v", i, r.Err)
		}
	}
	must(t, slow.Send(w.now, &Send{Pieces: [][]byte{make([]byte, 10)}, Protocol: Eager}))
	w.settle()
	if n := slow.User.(*pipe).to.endpoint.Usage().Unexpected; n != 1 {
		t.Errorf("a small message waits for READs")
	}
	slow.Abort(w.now, errHungUp)
	w.settle()
	if u := hub.endpoint.Usage(); u.Reading != 0 {
		t.Errorf("%+v", u)
	}
}

// TestEachPeerReadsSomething: whatever the others have of the pull window, each peer is asked for
// something at once, and all of them together for little more than the window.
func TestEachPeerReadsSomething(t *testing.T) {
	const window, peers, size = 64 << 10, 30, 50_000
	w := newWorld(t, 1)
	hub := w.node(Config{PullWindow: window, Chunk: 8 << 10, Protocol: Get})
	var ends []*Conn
	for range peers {
		_, c := w.join(w.node(Config{Protocol: Get}), hub, allCapabilities)
		ends = append(ends, c)
	}
	w.hold = func(_ *Conn, wr *verbs.SendWR) bool { return wr.Opcode == verbs.OpRead }
	for _, c := range ends {
		peer := c.User.(*pipe).peer.conn
		must(t, peer.Send(w.now, &Send{Pieces: [][]byte{make([]byte, size)}}))
		must(t, hub.endpoint.Receive(w.now, &Receive{
			Pieces: [][]byte{make([]byte, size)}, From: c,
		}))
		if w.settle(); c.pulling < leastRead {
			t.Errorf("%d bytes are read", c.pulling)
		}
	}
	if n := hub.endpoint.Usage().Reading; n < window || n > window+peers*leastRead {
		t.Errorf("%d bytes are read, of a window of %d", n, window)
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
