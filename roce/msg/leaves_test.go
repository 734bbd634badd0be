package msg

import (
	"testing"

	"xroce/roce/clock"
)

// TestLeavesAtOnce: what LeavesAtOnce promises of a message holds, whatever else is under way: it
// does not wait, it is no large one, and the time that it is posted at goes nowhere.
func TestLeavesAtOnce(t *testing.T) {
	promised, waited := 0, 0
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		a, b := w.node(Config{Slots: 4}), w.node(Config{Slots: 4})
		c, _ := w.join(a, b, allCapabilities)
		w.settle()
		lengths := []int{0, 1, 64, 500, 1024, 1025, 6000, 100_000}
		for range 300 {
			w.now += clock.Microsecond
			s := &Send{Level: Level(w.rand.IntN(int(Matched) + 1))}
			for range 1 + w.rand.IntN(2) {
				s.Pieces = append(s.Pieces, make([]byte, lengths[w.rand.IntN(len(lengths))]))
			}
			now, at := w.now, c.LeavesAtOnce(s.Protocol, s.Pieces)
			if at {
				now = 0
			}
			due, any := a.endpoint.NextDeadline()
			used := c.lanes[large].used
			must(t, c.Send(now, s))
			later, other := a.endpoint.NextDeadline()
			switch {
			case !at && s.state == sendPending:
				waited++
			case at && (c.pending.Len() > 0 || s.Choice.Protocol != Eager || due != later ||
				any != other || c.lanes[large].used != used):
				t.Fatalf("seed %d: %d bytes by %v: %d wait, deadline %v, was %v", seed, s.length,
					s.Choice.Protocol, c.pending.Len(), later, due)
			case at:
				promised++
			}
			if w.rand.IntN(4) == 0 {
				w.receiveAll(b, 200_000)
			}
		}
	}
	if promised < 100 || waited < 100 {
		t.Errorf("%d messages left at once, and %d waited", promised, waited)
	}
}

// receiveAll receives what there is, and lets all happen that then does.
func (w *world) receiveAll(n *node, most int) {
	w.t.Helper()
	r := &Receive{Pieces: [][]byte{make([]byte, most)}}
	for {
		must(w.t, n.endpoint.Receive(w.now, r))
		w.settle()
		if n.endpoint.NextReceived() != r {
			n.endpoint.Cancel(r)
			n.endpoint.NextReceived()
			return
		}
	}
}
