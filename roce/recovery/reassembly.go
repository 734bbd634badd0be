package recovery

import "xroce/roce/wire"

// A Reassembly keeps packets of one direction by PSN that came before the awaited
// one, less than Span ahead of it. Init makes it usable.
type Reassembly struct {
	pool  *Pool
	slots [Span]*keptPacket
	n     int
	base  wire.PSN // nothing before it is kept
}

// Init says where packets are kept.
func (r *Reassembly) Init(pool *Pool) { r.pool = pool }

// Len returns how many packets are kept.
func (r *Reassembly) Len() int { return r.n }

// Has reports whether a PSN is kept.
func (r *Reassembly) Has(psn wire.PSN) bool {
	kept := r.slots[psn%Span]
	return kept != nil && kept.packet.BTH.PSN == psn
}

// Put keeps a copy of a packet ahead of the PSN that Advance was last told. It
// reports false when there is no room for it.
func (r *Reassembly) Put(p *wire.Packet) bool {
	if uint32(p.BTH.PSN.Sub(uint32(r.base))) >= Span {
		return false
	}
	kept := r.pool.copyOf(p)
	if kept == nil {
		return false
	}
	r.slots[p.BTH.PSN%Span] = kept
	r.n++
	return true
}

// Take returns the packet with a PSN and forgets it, nil when it is not there. The
// packet is good until the next Put of any Reassembly of the pool.
func (r *Reassembly) Take(psn wire.PSN) *wire.Packet {
	if !r.Has(psn) {
		return nil
	}
	kept := r.slots[psn%Span]
	r.drop(psn)
	return &kept.packet
}

// drop gives back the packet with a PSN, which is kept.
func (r *Reassembly) drop(psn wire.PSN) {
	s := &r.slots[psn%Span]
	r.pool.put(*s)
	*s = nil
	r.n--
}

// Advance gives back what lies before the awaited PSN.
func (r *Reassembly) Advance(awaited wire.PSN) {
	for n := uint32(awaited.Sub(uint32(r.base))); r.n > 0 && n > 0; n-- {
		if r.Has(r.base) {
			r.drop(r.base)
		}
		r.base = r.base.Add(1)
	}
	r.base = awaited
}

// Clear gives everything back.
func (r *Reassembly) Clear() {
	for i, kept := range r.slots {
		if kept != nil {
			r.pool.put(kept)
			r.slots[i] = nil
		}
	}
	r.n = 0
}

// First returns the first PSN from psn on that is kept, limit when none is before it.
func (r *Reassembly) First(psn, limit wire.PSN) wire.PSN {
	if r.n == 0 {
		return limit
	}
	for range Span {
		if psn == limit || r.Has(psn) {
			return psn
		}
		psn = psn.Add(1)
	}
	return limit
}

// Bitmap writes which of the PSNs behind psn are kept: bit i, counted from the lowest
// of the first byte, stands for psn + 1 + i.
func (r *Reassembly) Bitmap(psn wire.PSN, dst []byte) {
	for i := range dst {
		dst[i] = 0
		for bit := range 8 {
			if r.Has(psn.Add(uint32(1 + 8*i + bit))) {
				dst[i] |= 1 << bit
			}
		}
	}
}
