package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"xroce/cmd/xroce/peer"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// mtu leaves room for the largest path MTU.
const mtu = 4200

// A cable joins two hosts, 0 and 1.
type cable struct {
	hostsAre string
	// open opens the device of a host.
	open func(host int, o engine.Options) (*engine.Device, error)
	// dial makes a TCP connection, or what stands for one, from host 0 to 1.
	dial func(ctx context.Context) (from, to net.Conn, err error)
	// close removes everything; remove says how somebody else can.
	close  func() error
	remove func() []string
}

// machineClock is the clock of a simulated network that runs in real time.
type machineClock struct{ start time.Time }

func (c machineClock) Now() roce.Time { return roce.Time(time.Since(c.start)) }

// simulated makes a cable of the simulated network.
func simulated() (*cable, error) {
	network, err := sim.NewNetwork(1, machineClock{time.Now()}, sim.Faults{})
	if err != nil {
		return nil, err
	}
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
		dial: func(context.Context) (net.Conn, net.Conn, error) {
			from, to := net.Pipe()
			return from, to, nil
		},
		close:  func() error { return nil },
		remove: func() []string { return nil },
	}, nil
}

// makeWire makes the best cable that this machine and this user can have: when
// there cannot be a real one, Options.Reason says why.
func makeWire(o *Options) (*cable, error) {
	if o.Simulated {
		return simulated()
	}
	w, err := namespaces()
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

// A pair is one connection between the two hosts.
type pair struct {
	dev [2]*engine.Device
	end [2]*peer.End
}

// Depths of the work queues of a pair. Receives are more than sends, so that
// no message ever finds the other end without one.
const (
	sendDepth = 128
	recvDepth = 512
)

// ackTimeout is the local ACK timeout code: half a second. The default of 67 ms
// would send packets again when something else keeps the CPUs for a while.
const ackTimeout = 17

// connect opens both devices and connects a QP of each to the other. The tap
// sees what host 0 sends and receives.
func (w *cable) connect(ctx context.Context, o engine.Options, tap engine.Tap) (*pair, error) {
	p := &pair{}
	for host := range p.dev {
		options := o
		if host == 0 {
			options.Tap = tap
		}
		dev, err := w.open(host, options)
		if err != nil {
			return nil, p.fail(err)
		}
		p.dev[host] = dev
		end, err := peer.New(dev, peer.Config{
			SendWR: sendDepth, RecvWR: recvDepth,
			Access: mem.LocalWrite | mem.RemoteWrite | mem.RemoteRead,
		})
		if err != nil {
			return nil, p.fail(err)
		}
		p.end[host] = end
		if err := end.ChooseGID(peer.AutoGID, nil, nil); err != nil {
			return nil, p.fail(err)
		}
	}
	for host, end := range p.end {
		err := end.Connect(ctx, p.end[1-host].Local, engine.ConnectOptions{Timeout: ackTimeout})
		if err != nil {
			return nil, p.fail(err)
		}
	}
	return p, nil
}

// fail closes what there is and returns err.
func (p *pair) fail(err error) error {
	if closeErr := p.close(); closeErr != nil {
		return fmt.Errorf("%w (and %w)", err, closeErr)
	}
	return err
}

// close closes the devices and with them all that is on them.
func (p *pair) close() error {
	var first error
	for _, d := range p.dev {
		if d == nil {
			continue
		}
		if err := d.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
