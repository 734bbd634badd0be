package msg_test

import (
	"bytes"
	"context"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// TestCloseWithADeadPeer: the wire is cut and both ends close. They do not wait as long as
// connection management asks the other whether it hears, which is more than a minute.
func TestCloseWithADeadPeer(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	var ends [2]*msg.Endpoint
	var devices [2]*engine.Device
	var at netip.AddrPort
	for i := range ends {
		addr := netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i)})
		port, err := network.NewPort(sim.PortConfig{
			MAC: [6]byte{2, 0, 0, 0, 0, byte(1 + i)}, MTU: 1500, Addrs: []netip.Addr{addr},
		})
		must(t, err)
		devices[i], err = engine.OpenLink(port, port, engine.Options{})
		must(t, err)
		t.Cleanup(func() { must(t, devices[i].Close()) })
		manager, err := cm.Open(devices[i], cm.Options{})
		must(t, err)
		t.Cleanup(func() { must(t, manager.Close()) })
		ends[i], err = msg.Open(devices[i], manager, msg.Options{Linger: time.Millisecond})
		must(t, err)
		t.Cleanup(func() { must(t, ends[i].Close()) })
		at = netip.AddrPortFrom(addr, 7471)
	}
	l, err := ends[1].Listen(at)
	must(t, err)
	accepted, dialing := make(chan error, 1), within(t)
	go func() {
		_, err := l.Accept(dialing)
		accepted <- err
	}()
	_, err = ends[0].Dial(dialing, at)
	must(t, err)
	must(t, <-accepted)
	must(t, network.SetFaults(sim.Faults{Drop: 1}))
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(20*time.Second))
	defer cancel()
	closed := make(chan error, len(ends))
	for _, e := range ends {
		go func() { closed <- e.Close() }()
	}
	for range ends {
		select {
		case err := <-closed:
			must(t, err)
		case <-ctx.Done():
			t.Fatal("it is not closed")
		}
	}
	for _, dev := range devices {
		must(t, dev.Close()) // or the managers wait, too
	}
}

// TestCloseWaitsForGoroutines: Close does not return before the last goroutine of the endpoint has
// ended, however late that is.
func TestCloseWaitsForGoroutines(t *testing.T) {
	a, _, ca, _ := newPair(t, sim.Faults{}, msg.Options{Linger: time.Nanosecond})
	lose := ca.WatchAnother()
	closed := make(chan error, 1)
	go func() { closed <- a.Close() }()
	buf := make([]byte, 1<<20)
	// Each look stops all goroutines and has them go on: Close would get on between two of them.
	for seen := 0; seen < 100; runtime.Gosched() {
		select {
		case <-closed:
			t.Fatalf("it is closed, and these are left:\n%s", buf[:runtime.Stack(buf, true)])
		default:
		}
		for _, stack := range bytes.Split(buf[:runtime.Stack(buf, true)], []byte("\n\n")) {
			if bytes.Contains(stack, []byte("(*Endpoint).close(")) &&
				bytes.Contains(stack, []byte("(*WaitGroup).Wait(")) {
				seen++
			}
		}
	}
	lose()
	must(t, <-closed)
}
