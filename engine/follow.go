package engine

import (
	"errors"
	"time"

	"xroce/bpf"
	"xroce/engine/host"
	"xroce/engine/internal/pathtable"
	"xroce/roce"
)

// How a device follows a Router, besides its changes.
const (
	// followPause is the least time between two looks at everything, so that a
	// host whose routes change all the time costs little.
	followPause = 20 * time.Millisecond
	// followAnew is how often the neighbours in use are looked at although nothing
	// changed. The kernel does not see our packets, so nothing else makes it find
	// out that a neighbour moved without a word. It is the time that the kernel
	// relies on a confirmation (base_reachable_time).
	followAnew = 30 * time.Second
)

// followRouter keeps the GID table and the paths of connected QPs as the host has
// it, until the host is closed.
func (d *Device) followRouter(r host.Router) {
	anew := time.NewTicker(followAnew)
	defer anew.Stop()
	look := time.NewTicker(missedLook)
	defer look.Stop()
	var missed missed
	missed.look(d)
	for {
		select {
		case _, ok := <-r.Changes():
			if !ok {
				return
			}
			d.interfaceChanged()
			d.addressesChanged()
			d.reroute(r, d.paths.Destinations())
			d.pause(followPause)
		case <-d.paths.Added():
			d.reroute(r, d.paths.Unlisted())
			d.pause(followPause) // of a host that moved, each connection may be a reason to look
		case <-anew.C:
			d.reroute(r, d.paths.Destinations())
		case <-look.C:
			missed.look(d)
		}
	}
}

// addressesChanged takes over the addresses of the port.
func (d *Device) addressesChanged() {
	changed, err := d.followAddresses()
	if err != nil {
		if !errors.Is(err, bpf.ErrClosed) {
			d.options.Logger.Error("the XDP program does not follow the addresses",
				"device", d.Name(), "error", err)
		}
		return
	}
	if changed {
		d.raise(AsyncEvent{Type: roce.EventGIDChange})
	}
}

// followAddresses makes the GID table, what the XDP program lets through and what
// the queue takes those of the port. Of an address that comes, packets are let
// through before anybody can be told of it; of one that goes, the last.
func (d *Device) followAddresses() (changed bool, err error) {
	port := d.host.Port()
	changed, left := d.gids.Update(port)
	if left > 0 {
		d.options.Logger.Warn("the GID table is full", "device", port.Name, "left out", left)
	}
	if !changed {
		return false, nil
	}
	return true, d.steer(func() { d.setLocal(d.gids.Addrs(), port.MAC) })
}

// followPath notes where a QP goes now, for reroute; one without an address vector goes
// nowhere. The destination of datagrams is not the QP's. The caller holds the progress
// lock.
func (d *Device) followPath(q *QP) {
	if d.paths == nil || q.Type() == roce.TypeUD {
		return
	}
	path := q.core.Attr().Path
	if path.Framing == 0 {
		d.paths.Remove(q)
		return
	}
	d.paths.Add(q, pathtable.DestinationOf(&path), pathtable.MACsOf(&path))
}

// forgetPath ends followPath. The caller holds the progress lock.
func (d *Device) forgetPath(q *QP) {
	if d.paths != nil {
		d.paths.Remove(q)
	}
}

// reroute asks for the first hop of destinations and tells it to the QPs that go
// there, if it is another one. While the host does not know any, they go on over the
// old one: it may be back by then, and if not, the retries of the QPs end it.
func (d *Device) reroute(r host.Router, destinations []pathtable.Destination) {
	for _, to := range destinations {
		from, ok := d.gids.Find(host.GIDRoCEv2, func(e host.GIDEntry) bool {
			return e.GID == to.Src && e.VLAN == to.VLAN
		})
		if !ok {
			continue
		}
		mac, known := d.knownMAC(to)
		if !known {
			hop, err := r.Lookup(to.VLAN, to.Src.Addr(), to.Dst.Addr())
			if err != nil || checkHop(to, hop) != nil {
				continue
			}
			mac = hop.MAC
		}
		by := pathtable.MACs{Src: from.MAC, Dst: mac}
		for _, qp := range d.paths.Tell(to, by) {
			qp.reroute(to, by)
		}
	}
}

// reroute takes over the MAC addresses of its path, unless it goes elsewhere by
// now. The peer's next packet or its own next timeout sends over the new one.
func (q *QP) reroute(to pathtable.Destination, by pathtable.MACs) {
	defer q.lock().mu.Unlock()
	path := q.core.Attr().Path
	if q.closed || !q.device().paths.Uses(q, to) || pathtable.MACsOf(&path) == by {
		return
	}
	// It has an address vector, or it would not be in the path table.
	_ = q.core.Reroute(by.Src, by.Dst)
}
