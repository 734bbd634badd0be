package msg_test

import (
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest/timeout"
)

// An ownClock goes as that of the machine does, but is not it: a device in direct mode with it has
// its services run by who makes progress.
type ownClock struct{ engine.Clock }

// A driver makes progress on devices until it is stopped.
type driver struct {
	stop    chan struct{}
	stopped sync.WaitGroup
}

func drive(devices ...*engine.Device) *driver {
	d := &driver{stop: make(chan struct{})}
	d.stopped.Go(func() {
		for {
			select {
			case <-d.stop:
				return
			default:
			}
			for _, dev := range devices {
				dev.Progress()
			}
		}
	})
	return d
}

func (d *driver) end() {
	close(d.stop)
	d.stopped.Wait()
}

// TestHangUpOnASimulatedDevice: a connection whose peer has hung up ends where whoever makes
// progress runs the services, so that to take completions calls them.
func TestHangUpOnASimulatedDevice(t *testing.T) {
	for range 30 { // who makes progress then is not always the same
		hangUpOnASimulatedDevice(t)
	}
}

func hangUpOnASimulatedDevice(t *testing.T) {
	clock := ownClock{engine.NewSystemClock()}
	network, err := sim.NewNetwork(1, clock, sim.Faults{})
	must(t, err)
	var devs [2]*engine.Device
	var managers [2]*cm.Manager
	var ends [2]*msg.Endpoint
	for i := range devs {
		port, err := network.NewPort(sim.PortConfig{
			MAC: [6]byte{2, 0, 0, 0, 0, byte(1 + i)}, MTU: 4200,
			Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i)})},
		})
		must(t, err)
		devs[i], err = engine.OpenLink(port, port, engine.Options{Direct: true, Clock: clock})
		must(t, err)
		options := quick
		options.Linger = -1
		// Both are driven in turn, so no answer is late, and the time-wait may be short.
		options.Machine.PacketLifeTime = 10
		managers[i], err = cm.Open(devs[i], options)
		must(t, err)
		_, err = msg.Open(devs[i], managers[i], msg.Options{Spin: time.Microsecond})
		if !errors.Is(err, rmsg.ErrInvalid) {
			t.Fatalf("an endpoint that spins: %v", err)
		}
		ends[i], err = msg.Open(devs[i], managers[i], msg.Options{})
		must(t, err)
	}
	d := drive(devs[0], devs[1])
	l, err := ends[1].Listen(netip.MustParseAddrPort("192.0.2.2:7471"))
	must(t, err)
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept(within(t))
		accepted <- err
	}()
	c, err := ends[0].Dial(within(t), netip.MustParseAddrPort("192.0.2.2:7471"))
	must(t, err)
	must(t, <-accepted)
	d.end()
	must(t, managers[0].Close()) // and nobody makes progress but who notices
	d = drive(devs[0], devs[1])
	select {
	case <-c.Done():
	case <-time.After(timeout.Scaled(20 * time.Second)):
		t.Fatal("the connection does not end")
	}
	if err := c.Send(t.Context(), nil); err == nil {
		t.Error("a message to nobody")
	}
	for i := range ends {
		must(t, ends[i].Close())
		must(t, managers[i].Close())
	}
	d.end()
	must(t, devs[0].Close())
	must(t, devs[1].Close())
}
