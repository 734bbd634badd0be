package msgtrial

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"xroce/engine"
	emsg "xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
)

// An adapter is a device of a node, with a wire of its own.
type adapter struct {
	regions engine.MRPool // of messages
	node    *node
	number  int
	port    *sim.Port
	device  *engine.Device
	cq      *engine.CQ
	entries int // of the CQ that rails may need
	up      bool
}

// openAdapter makes the device.
func (n *node) openAdapter(number int, random *rand.Rand) *adapter {
	w := n.w
	a := &adapter{node: n, number: number, up: true}
	var err error
	a.port, err = w.network.NewPort(sim.PortConfig{
		Name: fmt.Sprintf("node%d.%d", n.index, number), MTU: 4200,
		MAC:   campaign.MAC(n.index, number),
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(number), byte(n.index + 1)})},
	})
	w.must(err)
	a.device, err = engine.OpenLink(a.port, a.port, engine.Options{
		Clock: w.clock, Direct: true, Rand: random,
	})
	w.must(err)
	a.cq, err = a.device.CreateCQ(1)
	w.must(err)
	return a
}

// close closes the device, if it is there.
func (a *adapter) close() {
	if a.up {
		a.up = false
		a.node.w.must(a.device.Close())
	}
}

// poll takes what is complete.
func (a *adapter) poll() bool {
	n := a.node
	got, err := a.cq.Poll(n.wcs[:])
	if err != nil {
		n.w.fail(Ready, "node %d: its CQ: %v", n.index, err)
		return false
	}
	for i := range n.wcs[:got] {
		wc := &n.wcs[i]
		n.w.Mix(0xc0, uint64(wc.Time), wc.WRID, uint64(wc.Status), uint64(wc.ByteLen),
			uint64(wc.QPN))
		if r := a.rail(wc.QPN); r != nil {
			r.complete(wc)
		}
	}
	return got > 0
}

// rail finds the rail that has a queue pair, nil when it is closed.
func (a *adapter) rail(qpn uint32) *rail {
	for _, e := range a.node.ends {
		for _, r := range e.rails {
			if r.on == a && r.info.QPN == qpn {
				return r
			}
		}
	}
	return nil
}

// admit has room made in the CQ for one more rail.
func (a *adapter) admit(entries int) {
	a.entries += entries
	if a.up {
		a.node.w.must(a.cq.Resize(max(1, a.entries)))
	}
}

// checkFrames wants every frame back from a device that was closed.
func (a *adapter) checkFrames() {
	if tx, rx := a.port.Held(); tx != 0 || rx != 0 {
		a.node.w.fail(Residue, "node %d: %d transmit and %d receive frames are gone",
			a.node.index, tx, rx)
	}
}

// unplug takes an adapter away for good, unless it is the last one. Nobody hears of it.
func (n *node) unplug(number int) {
	left := 0
	for _, a := range n.adapters {
		if a.up {
			left++
		}
	}
	a := n.adapters[number%len(n.adapters)]
	if left < 2 || !a.up {
		return
	}
	n.w.say("node %d: adapter %d is gone", n.index, a.number)
	a.close()
	for a.poll() { // what had come before
	}
	for _, e := range n.ends {
		for _, r := range e.rails {
			if r.on != a {
				continue
			}
			r.blame("its adapter is gone")
			r.peer.blame("the adapter of the peer is gone")
			if !e.several {
				e.blame(r.cause)
				e.peer.blame(r.peer.cause)
			}
			if r.core != nil {
				r.core.Lose(n.w.clock.Now(), errUnplugged)
			}
		}
	}
	n.progress()
}

// domains are those of an end, of each adapter that is there.
func (e *end) domains() []emsg.Domain {
	var list []emsg.Domain
	for i, a := range e.node.adapters {
		d := emsg.Domain{PD: e.pds[i], Pool: &a.regions}
		if a.up {
			d.Device = a.device
		}
		list = append(list, d)
	}
	return list
}

// nextTime is when the adapter has to do something of itself.
func (a *adapter) nextTime(at func(roce.Time)) {
	if !a.up {
		return
	}
	if t, ok := a.port.NextArrival(); ok {
		at(t)
	}
	if t, ok := a.device.NextDeadline(); ok {
		at(t)
	}
}
