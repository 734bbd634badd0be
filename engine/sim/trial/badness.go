package trial

import "xroce/roce"

// A badness is why a request must fail.
type badness uint8

const (
	fine       badness = iota
	badRKey            // no such key
	badRights          // the key does not grant the access
	badRange           // the last bytes are outside of the region
	badLKey            // no such key here
	badLRights         // READ into memory that may not be written to
	badTicket          // a key that was taken out of use
	badBounds          // inside the region of a window, and outside the window
	badWindow          // READ through a window that lets write
	numBadness
)

var badnessNames = [numBadness]string{
	"fine", "wrong R_Key", "no such right", "out of range", "wrong L_Key", "no local right",
	"a key out of use", "out of a window's bounds", "no such right of a window",
}

func (b badness) String() string { return badnessNames[b] }

// local reports whether our own end finds out.
func (b badness) local() bool { return b == badLKey || b == badLRights }

// spoil chooses what is wrong with a request.
func (e *endpoint) spoil(o *op) badness {
	if o.size == 0 {
		return fine // a range of nothing needs no key
	}
	choices := []badness{badLKey}
	if o.remote {
		choices = append(choices, badRKey)
	}
	if o.remote && o.fixed == 0 {
		choices = append(choices, badRights, badRange)
	}
	if o.remote && o.fixed == 0 && !o.gets && e.peer.ticket.used() {
		choices = append(choices, badTicket, badTicket, badTicket, badTicket)
	}
	if t := &e.peer.ticket; o.remote && o.fixed == 0 && t.mw != nil && !t.gone {
		if o.gets {
			choices = append(choices, badWindow, badWindow, badWindow, badWindow, badWindow)
		} else {
			choices = append(choices, badBounds, badBounds, badBounds)
		}
	}
	if o.gets {
		choices = append(choices, badLRights)
	}
	return choices[e.w.rng.IntN(len(choices))]
}

// spoiled makes the work request as bad as the op says.
func (o *op) spoiled(e *endpoint, wr *roce.SendWR) {
	p := e.peer
	switch o.bad {
	case badRKey:
		bit := e.w.rng.IntN(32)
		if bit < 8 && p.ticket.mw != nil && wr.RKey == p.ticket.key {
			bit += 8 // only the variant differs from bind to bind: it may be right by then
		}
		wr.RKey ^= 1 << bit
	case badRights:
		// What is for the peer's own use, and what it may read only.
		mr, pool := p.local, poolSource
		if !o.gets && one(e.w.rng, 2) {
			mr, pool = p.readable, poolReadable
		}
		s := p.arena.pools[pool][0]
		wr.RKey, wr.RemoteAddr = mr.RKey(), p.addr(mr, pool, s.off)
	case badRange:
		mr := p.writable
		if o.gets && o.distant == nil {
			mr = p.readable
		}
		wr.RKey = mr.RKey()
		wr.RemoteAddr = mr.Addr() + uint64(len(mr.Bytes())) - uint64(e.w.rng.IntN(o.size))
	case badTicket:
		wr.RKey, wr.RemoteAddr = p.ticket.outOfUse()
	case badBounds, badWindow:
		o.beside(e, wr)
	case badLKey:
		for i := range wr.SGList {
			wr.SGList[i].LKey ^= 0x100
		}
	case badLRights:
		s := e.arena.pools[poolReadable][0]
		wr.SGList = []roce.SGE{{
			Addr: e.addr(e.readable, poolReadable, s.off), Length: uint32(o.size),
			LKey: e.readable.LKey(),
		}}
	}
}

// beside names memory of the peer's window, for a right that it has not, or around it:
// the last byte that it asks for is the first behind, or its first one the last before.
func (o *op) beside(e *endpoint, wr *roce.SendWR) {
	p := e.peer
	s := p.arena.pools[poolTicket][0]
	wr.RKey, wr.RemoteAddr = p.ticket.key, p.addr(p.ticket.mr, poolTicket, s.off)
	switch {
	case o.bad == badWindow:
	case one(e.w.rng, 2):
		wr.RemoteAddr--
	default:
		wr.RemoteAddr += uint64(s.n - o.size + 1)
	}
}
