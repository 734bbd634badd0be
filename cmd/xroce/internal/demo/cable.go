package demo

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

// mtu leaves room for the largest path MTU.
const mtu = 4200

// A cable joins two hosts, 0 and 1.
type cable struct {
	hostsAre string
	// open opens the device of a host.
	open func(host int, o engine.Options) (*engine.Device, error)
	// lossy makes a bad cable between the same two hosts, or ones like them. It
	// loses that share of the frames in each direction, which ones the seed
	// decides. It is closed when its devices and this cable are.
	lossy func(share float64, seed uint64) (*cable, *loss, error)
	// close removes everything; remove says how somebody else can.
	close  func() error
	remove func() []string
}

// machineClock is the clock of a simulated network that runs in real time.
type machineClock struct{ start time.Time }

func (c machineClock) Now() roce.Time { return roce.Time(time.Since(c.start)) }

// simulated makes a cable of the simulated network.
func simulated() (*cable, error) {
	c, _, err := simulatedLossy(0, 1)
	return c, err
}

// simulatedLossy makes one that loses frames.
func simulatedLossy(share float64, seed uint64) (*cable, *loss, error) {
	network, err := sim.NewNetwork(seed, machineClock{time.Now()}, sim.Faults{Drop: share})
	if err != nil {
		return nil, nil, err
	}
	lost := &loss{counts: func() (sent, lost uint64) {
		c := network.Counts()
		return c.Sent, c.Lost()
	}}
	return &cable{
		hostsAre: "two hosts on a simulated network in this process",
		open: func(host int, o engine.Options) (*engine.Device, error) {
			port, err := network.NewPort(sim.PortConfig{
				Name: fmt.Sprintf("sim%d", host), MAC: [6]byte{0x02, 0, 0, 0, 0, byte(host + 1)},
				MTU: mtu, Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(host + 1)})},
			})
			if err != nil {
				return nil, err
			}
			return engine.OpenLink(port, port, o)
		},
		lossy:  simulatedLossy,
		close:  func() error { return nil },
		remove: func() []string { return nil },
	}, lost, nil
}

// makeWire makes the best cable that this machine and this user can have: when
// there cannot be a real one, Options.Reason says why.
func makeWire(o *Options) (*cable, error) {
	if o.Simulated {
		return simulated()
	}
	queues := 1
	for _, q := range o.Device.Queues {
		queues = max(queues, q+1)
	}
	w, err := namespaces(max(queues, o.Device.Drivers))
	if err == nil {
		if err = tryOpen(w, o); err == nil {
			return w, nil
		}
		err = errors.Join(err, w.close())
	}
	o.Reason = reason(err)
	return simulated()
}

// tryOpen opens and closes a device.
func tryOpen(w *cable, o *Options) error {
	d, err := w.open(0, o.Device)
	if err != nil {
		return err
	}
	return d.Close()
}

// reason says in one line why there is no real cable.
func reason(err error) string {
	if errors.Is(err, os.ErrPermission) && os.Geteuid() != 0 {
		return "simulated because making network namespaces needs root; try sudo"
	}
	return "simulated because AF_XDP is not to be had: " +
		strings.ReplaceAll(err.Error(), "\n", "; ")
}

// tell has every device told of that is opened from now on, also of bad cables.
func (w *cable) tell(opened func(*engine.Device)) {
	open, lossy := w.open, w.lossy
	w.open = func(host int, o engine.Options) (*engine.Device, error) {
		d, err := open(host, o)
		if err == nil {
			opened(d)
		}
		return d, err
	}
	w.lossy = func(share float64, seed uint64) (*cable, *loss, error) {
		bad, l, err := lossy(share, seed)
		if err == nil {
			bad.tell(opened)
		}
		return bad, l, err
	}
}

// describe says what a device runs on.
func describe(o *Options, w *cable, d *engine.Device) Wire {
	info := d.Link()
	wire := Wire{
		Backend: info.Backend, XDPMode: d.AttachMode(), Device: d.Name(), MTU: d.Port().MTU,
		PathMTU: d.ActiveMTU().Bytes(), hostsAre: w.hostsAre, Reason: o.Reason,
	}
	if wire.XDPMode != "" {
		wire.Copy = "copy"
		if info.ZeroCopy {
			wire.Copy = "zero-copy"
		}
	}
	return wire
}
