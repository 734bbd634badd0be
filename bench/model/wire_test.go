package model

import (
	"errors"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/msg"
)

// testCosts are such that each step can be told from the others.
var testCosts = Costs{
	Delay: 100 * clock.Microsecond, Step: clock.Microsecond, PerByte: 1, Copy: 0.5,
}

func newWire(t *testing.T, c msg.Config, costs Costs, connections int) *Wire {
	t.Helper()
	w, err := New(c, costs, connections)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func send(t *testing.T, w *Wire, connection, n int, by msg.Protocol) clock.Time {
	t.Helper()
	took, used, err := w.Send(connection, n, by)
	if err != nil || used != by && by != msg.Auto {
		t.Fatalf("%d bytes by %v went by %v: %v", n, by, used, err)
	}
	return took
}

// TestCrossings: an eager message crosses the wire once, a rendezvous by get three times: RTS, the
// request of the READ, and the bytes.
func TestCrossings(t *testing.T) {
	w := newWire(t, msg.Config{}, testCosts, 1)
	for _, tt := range []struct {
		n    int
		by   msg.Protocol
		want int64
	}{{64, msg.Eager, 1}, {64, msg.Get, 3}, {20_000, msg.Get, 3}} {
		took := send(t, w, 0, tt.n, tt.by)
		if got := int64(took / testCosts.Delay); got != tt.want { // all else is less than one
			t.Errorf("%d bytes by %v took %d ns: %d crossings, want %d", tt.n, tt.by, took, got,
				tt.want)
		}
	}
}

// TestSlotsAreMadeOnce: the first message that is too long for a slot waits until there is a large
// one, the second does not.
func TestSlotsAreMadeOnce(t *testing.T) {
	w := newWire(t, msg.Config{}, testCosts, 1)
	before := w.Registered()
	first := send(t, w, 0, 20_000, msg.Provisioned)
	second := send(t, w, 0, 20_000, msg.Provisioned)
	if first < 3*testCosts.Delay || second > 2*testCosts.Delay {
		t.Errorf("the first took %d ns, the second %d", first, second)
	}
	if grown := w.Registered() - before; grown < 20_000 || grown > 200_000 {
		t.Errorf("%d bytes more are registered", grown)
	}
}

// TestRegistered: each connection has its slots, and a rendezvous leaves nothing behind.
func TestRegistered(t *testing.T) {
	one := newWire(t, msg.Config{}, testCosts, 1)
	ten := newWire(t, msg.Config{}, testCosts, 10)
	if a, b := one.Registered(), ten.Registered(); a == 0 || b != 10*a {
		t.Errorf("%d bytes of one connection, %d of ten", a, b)
	}
	before := ten.Registered()
	send(t, ten, 9, 100_000, msg.Get)
	send(t, ten, 3, 100_000, msg.Put)
	if after := ten.Registered(); after != before {
		t.Errorf("%d bytes are registered behind a rendezvous, %d before", after, before)
	}
}

// TestPinning: who has to pin pays for each byte of a rendezvous, and nothing for slots that are
// there.
func TestPinning(t *testing.T) {
	pinned := testCosts
	pinned.PinByte = 10
	const n = 8000
	for _, by := range []msg.Protocol{msg.Get, msg.Provisioned} {
		cheap, dear := newWire(t, msg.Config{}, testCosts, 1), newWire(t, msg.Config{}, pinned, 1)
		for _, w := range []*Wire{cheap, dear} {
			send(t, w, 0, n, by)
		}
		more := send(t, dear, 0, n, by) - send(t, cheap, 0, n, by)
		if by == msg.Provisioned && more != 0 || by == msg.Get && more < 10*n {
			t.Errorf("%v: pinning takes %d ns of a later message", by, more)
		}
	}
}

// TestSameEveryTime: a run is the same each time.
func TestSameEveryTime(t *testing.T) {
	run := func() (all []clock.Time) {
		w := newWire(t, msg.Config{}, testCosts, 2)
		for n := 1; n < 1<<20; n *= 8 {
			all = append(all, send(t, w, n%2, n, msg.Auto))
		}
		return all
	}
	a, b := run(), run()
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("message %d took %d ns, and %d", i, a[i], b[i])
		}
	}
}

func TestEndless(t *testing.T) {
	costs := testCosts
	costs.EndOfTime = 1
	if _, err := New(msg.Config{}, costs, 1); !errors.Is(err, ErrEndless) {
		t.Errorf("%v, want %v", err, ErrEndless)
	}
}
