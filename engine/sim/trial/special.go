package trial

import (
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// ticketSize is the size of the region whose key a peer may take out of use.
const ticketSize = 256

// claimFlush names a part of a slot of the peer, for nothing.
func claimFlush(e *endpoint, o *op) bool {
	pool := e.peer.arena.pools[poolWritable]
	o.size = 0
	claimDistant(e, o, pool[e.w.rng.IntN(len(pool))])
	return true
}

// retireFlush wants what was written before to be there.
func retireFlush(e *endpoint, o *op) string {
	o.distant.unclaim(o)
	if len(o.distant.claims) > 0 || o.distant.locked {
		return "" // later requests may already show
	}
	return e.peer.arena.differs(o.distant)
}

// flush makes the work request of a FLUSH.
func (o *op) flush(e *endpoint, wr *roce.SendWR) {
	wr.Flush, wr.FlushRegion = wire.FlushGlobal, one(e.w.rng, 3)
	wr.FlushLength = uint32(e.w.rng.IntN(o.distant.n - o.distantAt + 1))
}

// A ticket is a small region of an endpoint that the peer writes to until it
// takes the key out of use.
type ticket struct {
	mr   *engine.MR
	gone bool   // the peer has posted a SEND_INV
	took bool   // it has arrived
	old  uint32 // the key before, when there was one
}

// used tells whether there is a key that was taken out of use.
func (t *ticket) used() bool { return t.gone || t.old != 0 }

// outOfUse is such a key, of memory that is there.
func (t *ticket) outOfUse() (rkey uint32, addr uint64) {
	if t.gone {
		return t.mr.RKey(), t.mr.Addr()
	}
	return t.old, t.mr.Addr()
}

// issue registers the memory of tickets anew.
func (e *endpoint) issue() {
	if e.arena.pools[poolTicket] == nil {
		return
	}
	var old uint32
	if e.ticket.mr != nil {
		old = e.ticket.mr.RKey()
		e.ticket.mr.Deregister()
	}
	mr, err := e.node.device.RegMR(e.node.pd, e.arena.region(poolTicket, poolTicket),
		mem.LocalWrite|mem.RemoteWrite|mem.Invalidatable)
	e.w.must(err)
	e.ticket = ticket{mr: mr, old: old}
}

// claimTicket takes a place in the region for a WRITE.
func claimTicket(e *endpoint, o *op) bool {
	if e.peer.ticket.gone {
		return false
	}
	o.size = min(o.size, ticketSize)
	if !claimSource(e, o) {
		return false
	}
	claimDistant(e, o, e.peer.arena.pools[poolTicket][0])
	return true
}

// claimInvalidate takes the key of the region.
func claimInvalidate(e *endpoint, o *op) bool {
	t := &e.peer.ticket
	if t.gone || !claimSource(e, o) {
		return false
	}
	t.gone, o.key32 = true, t.mr.RKey()
	return true
}

// arriveInvalidate makes it the receiver's turn to make a new key.
func arriveInvalidate(e *endpoint, o *op, r *receive) string {
	e.ticket.took = true
	return arriveSend(e, o, r)
}

// reissue makes a new key for one that was taken out of use, sooner or later:
// the peer may try the old one meanwhile. It reports whether it did.
func (e *endpoint) reissue() bool {
	if !e.ticket.took || e.deregistered() || !e.w.quiet && !one(e.w.rng, 8) {
		return false
	}
	e.issue()
	return true
}

// passed tells which request passed a fence, nil when none did: begun, with the
// data of an earlier READ, atomic or their like still to come.
func (e *endpoint) passed(s *roce.Snapshot) *op {
	first := len(e.sends) - int(s.SendPosted)
	if first < 0 {
		return nil
	}
	waits := false
	for _, o := range e.sends[first : first+int(s.SendBegun)] {
		if o.fence && waits {
			return o
		}
		waits = waits || o.counted
	}
	return nil
}
