package trial

import (
	"xroce/roce"
	"xroce/roce/wire"
)

// ticketSize is the size of the memory whose key may be taken out of use.
const ticketSize = 256

// claimFlush chooses a part of a slot of the peer, without data. It reports whether there
// is one, which is always so.
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
