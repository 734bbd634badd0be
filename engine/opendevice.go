package engine

import (
	"errors"
	"fmt"

	"xroce/bpf"
	"xroce/engine/internal/pathtable"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
	"xroce/xsk"
)

// This file makes devices.

// OpenLink makes a device of a link and a host. It owns both then, and closes
// them, also when it fails. Open does this for a network interface.
func OpenLink(link xsk.Link, host Host, o Options) (*Device, error) {
	return openDevice([]xsk.Link{link}, host, nil, o)
}

// openDevice is OpenLink of links that a program steers packets to; nil is none. Each link
// is a queue of the device. The program stays the caller's when it fails.
func openDevice(
	links []xsk.Link, host Host, program *bpf.Program, o Options,
) (*Device, error) {
	fail := func(err error) (*Device, error) {
		errs := []error{err}
		for _, link := range links {
			errs = append(errs, link.Close())
		}
		return nil, errors.Join(append(errs, host.Close())...)
	}
	if err := o.check(); err != nil {
		return fail(err)
	}
	if o.Steer && program == nil {
		return fail(fmt.Errorf("engine: Steer is for network cards, which this link has none of"))
	}
	o.setDefaults()
	if mtu := wire.ActiveMTU(host.Port().MTU); mtu == 0 {
		err := fmt.Errorf("engine: MTU %d of %s is too small: the smallest path MTU of 256 "+
			"needs %d; raise it with: ip link set %s mtu 1500", host.Port().MTU,
			host.Port().Name, 256+wire.MTUOverhead, host.Port().Name)
		return fail(err)
	}
	lossy, _ := o.Tap.(LossyTap)
	if len(links) > 1 && o.Tap != nil {
		o.Tap = &sharedTap{tap: o.Tap}
	}
	d := newDevice(host, program, o)
	d.lossyTap, d.mtu = lossy, host.Port().MTU
	for _, link := range links {
		d.addQueue(link, host.Port().MAC)
	}
	if _, err := d.followAddresses(); err != nil {
		return fail(err)
	}
	if w, ok := host.(PortWatcher); ok {
		for _, q := range d.queues {
			q.portDown = !host.Port().Up
		}
		d.watching.Go(func() { d.followPort(w) })
	}
	if w, ok := host.(RemovalWatcher); ok {
		d.watching.Go(func() { d.followRemoval(w) })
	}
	if r, ok := host.(Router); ok {
		d.paths = pathtable.New[*QP]()
		d.watching.Go(func() { d.followRouter(r) })
	}
	if program != nil {
		d.watching.Go(d.followProgram)
	}
	if d.moves.wanted != nil {
		d.watching.Go(d.followMoves)
	}
	if !o.Direct {
		for i, q := range d.queues {
			d.drivers = append(d.drivers, startDriver(q, i, &o))
		}
	}
	return d, nil
}

// newDevice makes a device that has no queue yet, of options with their defaults.
func newDevice(host Host, program *bpf.Program, o Options) *Device {
	d := &Device{
		host: host, keys: mem.NewKeys(o.Rand), qps: newQPTable(o.Rand),
		srqs: roce.NewNumberTable[SRQ](1, numbers24, o.Rand), options: o,
		direct: o.Direct, maxInlineRecv: maxInlineRecv(), program: program,
		failed: make(chan struct{}),
		steering: steering{
			owned: map[bpf.Key]bool{}, v1: map[*QP]bool{}, always: o.RoCEv1,
		},
	}
	if o.Windows2A {
		d.keys.SetWindows2A()
	}
	d.async.init()
	d.services.init(d)
	d.syncs.init(d)
	d.channels.open = map[*CompChannel]struct{}{}
	return d
}

// followPort raises the events of the port until the host is closed.
func (d *Device) followPort(w PortWatcher) {
	for up := range w.PortStates() {
		event := roce.EventPortErr
		if up {
			event = roce.EventPortActive
		}
		for _, q := range d.queues {
			q.portState(up)
		}
		d.raise(AsyncEvent{Type: event})
	}
}

// newQPTable makes an empty table of QPs.
func newQPTable(rand roce.Rand) *roce.NumberTable[QP] {
	// QPNs 0 and 1 are those of management, 0xffffff that of multicast; rxe gives none
	// below 16 either.
	return roce.NewNumberTable[QP](firstQPN, wire.MulticastQP-1, rand)
}
