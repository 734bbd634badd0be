package msg

import (
	"net/netip"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// TestWhoSpinsIsNotWaitedFor: while somebody spins the goroutine of the services does not queue up
// for the lock, which would be handed to it at the cost of who spins, and comes again soon.
func TestWhoSpinsIsNotWaitedFor(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	port, err := network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, 1}, MTU: 1500,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, 1})},
	})
	must(t, err)
	dev, err := engine.OpenLink(port, port, engine.Options{Direct: true})
	must(t, err)
	defer dev.Close()
	manager, err := cm.Open(dev, cm.Options{})
	must(t, err)
	defer manager.Close()
	e, err := Open(dev, manager, Options{})
	must(t, err)
	defer e.Close()

	e.drive.spinning.Add(1)
	e.mu.Lock()
	now := dev.Now()
	called := make(chan struct{})
	go func() {
		defer close(called)
		s := service{e, e.nic}
		at, ok := s.NextDeadline()
		if !ok || at <= now || at > dev.Now()+driverPause {
			t.Errorf("it comes again at %v, %v, and now is %v", at, ok, now)
		}
		s.HandleDeadline(at)
	}()
	select {
	case <-called:
	case <-time.After(timeout.Scaled(5 * time.Second)):
		t.Error("it waits for the lock")
	}
	e.mu.Unlock()
	e.drive.spinning.Add(-1)
	<-called
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
