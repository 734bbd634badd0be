package msg

import (
	"testing"

	"xroce/roce/clock"
)

// TestMessagesOfPeersThatAreGone: what a peer sent before it hung up can be received, and those
// who come again and again, and send what nobody wants, make nothing grow.
func TestMessagesOfPeersThatAreGone(t *testing.T) {
	w := newWorld(t, 1)
	hub := w.node(Config{Unexpected: 1 << 10})
	guest := w.node(Config{})
	visit := func(tag uint64) *Conn {
		t.Helper()
		c, there := w.join(guest, hub, allCapabilities)
		w.settle()
		must(t, c.Send(w.now, &Send{Pieces: [][]byte{pattern(int(tag), 500)}, Tag: tag}))
		w.settle()
		c.Abort(w.now, ErrClosed)
		for w.settle(); there.Err() == nil; w.settle() {
			w.now += clock.Second
			hub.endpoint.HandleDeadline(w.now)
		}
		w.pipes = nil
		return there
	}
	const visits = 2000
	var last *Conn
	for i := range visits {
		last = visit(uint64(i))
	}
	if u := hub.endpoint.Usage(); u.Unexpected == 0 || int64(u.Unexpected)*leftCost > leftLeast {
		t.Errorf("%d messages are kept of %d peers that are gone", u.Unexpected, visits)
	}
	if n := hub.endpoint.Snapshot()[DroppedLate]; n == 0 {
		t.Error("what was dropped is not counted")
	}
	r := &Receive{
		Pieces: [][]byte{make([]byte, 500)}, Mask: ^uint64(0), Tag: visits - 1, From: last,
	}
	must(t, hub.endpoint.Receive(w.now, r))
	if hub.endpoint.NextReceived() != r || r.Err != nil || r.Length != 500 {
		t.Errorf("the last one: %v, %d bytes", r.Err, r.Length)
	}
	if err := hub.endpoint.Receive(w.now, r); err != last.Err() {
		t.Errorf("a second one: %v", err)
	}
	if n := hub.endpoint.spare.Len(); n > maxSpare {
		t.Errorf("%d spare arrivals", n)
	}
}
