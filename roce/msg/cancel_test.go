package msg

import (
	"errors"
	"testing"
)

// TestCancelledOrReceived takes messages back at any moment, by any protocol: one that comes back
// as cancelled is never received, one that comes back without an error is, and each once; the
// order of the others holds.
func TestCancelledOrReceived(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(120) {
		w := newWorld(t, seed)
		c := Config{Slots: 4, Unexpected: 3000, Protocol: Protocol(seed % uint64(protocolCount))}
		a, b := w.node(c), w.node(c)
		ca, cb := w.join(a, b, allCapabilities)
		var sends []*Send
		for n := range 30 {
			s := &Send{
				Tag: uint64(n), Level: Level(w.rand.IntN(4)),
				Pieces: [][]byte{make([]byte, 100+w.rand.IntN(20_000))},
			}
			must(t, ca.Send(w.now, s))
			sends = append(sends, s)
			for range w.rand.IntN(20) {
				w.step()
			}
			s = sends[w.rand.IntN(len(sends))]
			if a.endpoint.CancelSend(w.now, s) {
				outcomes["accepted"]++
			} else {
				outcomes["too late"]++
			}
		}
		w.settle()
		receives := make([]*Receive, len(sends))
		for i := range receives {
			receives[i] = &Receive{Pieces: [][]byte{make([]byte, 30_000)}}
			must(t, b.endpoint.Receive(w.now, receives[i]))
		}
		w.settle()
		got := map[uint64]bool{}
		last := -1
		for _, r := range receives {
			if b.endpoint.NextReceived() == nil {
				break
			}
			if r.Err != nil || int(r.SentTag) <= last {
				t.Fatalf("seed %d: message %d behind %d: %v", seed, r.SentTag, last, r.Err)
			}
			last = int(r.SentTag)
			got[r.SentTag] = true
		}
		done := 0
		for s := a.endpoint.NextSent(); s != nil; s = a.endpoint.NextSent() {
			done++
			switch {
			case s.Err == nil && got[s.Tag]:
				outcomes["received"]++
			case errors.Is(s.Err, ErrCancelled) && !got[s.Tag]:
				outcomes["cancelled"]++
			default:
				t.Fatalf("seed %d: message %d by %v: %v, received %v", seed, s.Tag, s.Choice,
					s.Err, got[s.Tag])
			}
			if a.endpoint.CancelSend(w.now, s) {
				t.Fatalf("seed %d: a message that is complete is cancelled", seed)
			}
		}
		if done != len(sends) {
			t.Fatalf("seed %d: %d of %d are complete", seed, done, len(sends))
		}
		ca.Close(w.now)
		cb.Close(w.now)
		w.settle()
		w.nothingLeft()
	}
	for _, what := range []string{"accepted", "too late", "received", "cancelled"} {
		if outcomes[what] < 50 {
			t.Errorf("%s: %d times", what, outcomes[what])
		}
	}
}

// TestCancelReachesAcrossFullSlots: the RTS waits at the receiver behind messages that nobody
// receives. It is taken back all the same.
func TestCancelReachesAcrossFullSlots(t *testing.T) {
	d := newDuo(t, Config{Unexpected: 1, Protocol: Get})
	for range 3 {
		must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{make([]byte, 500)}, Protocol: Eager}))
	}
	s := &Send{Pieces: [][]byte{make([]byte, 5000)}}
	must(t, d.ca.Send(d.now, s))
	d.settle()
	if d.cb.arrivals.n < 2 || !d.a.endpoint.CancelSend(d.now, s) {
		t.Fatalf("%d arrivals wait", d.cb.arrivals.n)
	}
	d.settle()
	for range 3 {
		if d.a.endpoint.NextSent() == s {
			t.Fatal("the one that is taken back goes first")
		}
	}
	if d.a.endpoint.NextSent() != s || !errors.Is(s.Err, ErrCancelled) {
		t.Errorf("it is not cancelled: %v", s.Err)
	}
	// It may be sent again, and is received then.
	must(t, d.ca.Send(d.now, s))
	for range 4 {
		must(t, d.b.endpoint.Receive(d.now, &Receive{Pieces: [][]byte{make([]byte, 5000)}}))
	}
	d.settle()
	if d.a.endpoint.NextSent() != s || s.Err != nil {
		t.Errorf("sent again: %v", s.Err)
	}
}
