package engine

import (
	"xroce/roce"
)

// This file is about changes of the interface that are none of its addresses: its MTU and its
// queues.

// interfaceChanged takes over what has changed. One goroutine calls it, that of the host's changes.
func (d *Device) interfaceChanged() {
	d.mtuChanged()
	for _, q := range d.queues {
		if q.link.changed == nil {
			continue
		}
		var why error
		err := d.inNamespace(func() error {
			why = q.link.changed(q.link.Info())
			return nil
		})
		if err != nil || why == nil {
			continue // the namespace is gone: so is the interface
		}
		q.lock()
		q.lose(why)
		q.mu.Unlock()
	}
}

// mtuChanged tells of another MTU. QPs that are connected keep their path MTU, as the architecture
// has it: a requester and its peer number packets by it. Where the MTU fell below, their long
// packets are lost on the way, short ones are not, and they go on if it is raised again before
// their retries are used up. New connections get what fits.
func (d *Device) mtuChanged() {
	port := d.host.Port()
	if port.MTU == d.mtu {
		return
	}
	was := d.mtu
	d.mtu = port.MTU
	d.resets.mtuChanges.Add(1)
	for _, q := range d.queues {
		q.lock()
		q.tellMTU()
		q.mu.Unlock()
	}
	d.raise(AsyncEvent{Type: roce.EventPortActive}) // query it again
	log := d.options.Logger.With("device", port.Name, "from", was, "to", port.MTU)
	if n := d.longerThan(port.PathBytes()); n > 0 {
		log.Warn("the MTU fell below the path MTU of connected queue pairs, whose long packets "+
			"are lost until it is raised", "queue pairs", n)
		return
	}
	log.Info("the MTU changed")
}

// longerThan is how many QPs have packets with a longer payload than this.
func (d *Device) longerThan(most int) (n int) {
	for _, q := range d.queues {
		q.lock()
		for _, qp := range d.qps.All {
			if qp.home() != q {
				continue // and what it is, another lock guards, or nobody has made it yet
			}
			if a := qp.core.Attr(); a.FullPacket() > most {
				n++
			}
		}
		q.mu.Unlock()
	}
	return n
}
