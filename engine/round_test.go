package engine_test

import (
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk"
)

// A doorLink is a port on which frames come when the test says so: so many are let in.
type doorLink struct {
	*simPort
	letIn int
}

func (l *doorLink) Receive(dst []xsk.RxFrame) int {
	n := l.simPort.Receive(dst[:min(len(dst), l.letIn)])
	l.letIn -= n
	return n
}

// TestRound: a round tells whether there was anything to do on any queue, and when that was by the
// clock of the device. The time is that of the round, not of one before, and there is none of a
// round with nothing to do.
func TestRound(t *testing.T) {
	clock := &sim.VirtualClock{}
	clock.AdvanceTo(7 * roce.Second)
	network := newNetwork(t, 1, clock, sim.Faults{})
	var links [2]*doorLink
	for i := range links {
		links[i] = &doorLink{simPort: newPort(t, network, i)}
	}
	dev, err := engine.OpenLinks([]xsk.Link{links[0], links[1]}, links[0],
		engine.Options{Clock: clock, Direct: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	peer := newPort(t, network, 2)
	quiet := func(when string) {
		t.Helper()
		clock.AdvanceTo(clock.Now() + roce.Second)
		if worked, at := dev.Round(); worked || at != 0 {
			t.Errorf("%s: %t, at %d", when, worked, at)
		}
	}
	for dev.Progress() { // what a device does once it is open
		clock.AdvanceTo(clock.Now() + roce.Millisecond)
	}
	quiet("nothing came")
	frame := make([]byte, 60)
	for _, in := range [][]int{{0}, {1}, {0, 1}, {1, 0}} {
		for _, i := range in {
			mac := links[i].Port().MAC
			copy(frame, mac[:])
			inject(t, peer, frame)
			links[i].letIn = 1
		}
		clock.AdvanceTo(clock.Now() + roce.Second)
		if worked, at := dev.Round(); !worked || at != clock.Now() {
			t.Errorf("on %d: %t, at %d, now %d", in, worked, at, clock.Now())
		}
		clock.AdvanceTo(clock.Now() + 1)
		// In direct mode what there is to send waits for the round behind.
		if worked, at := dev.Round(); worked && at != clock.Now() {
			t.Errorf("behind %d: at %d, now %d", in, at, clock.Now())
		}
		quiet("all is done")
	}
}
