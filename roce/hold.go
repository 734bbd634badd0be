package roce

import "xroce/roce/wire"

// holdSpan is how far ahead of the awaited PSN a packet may lie and still be
// kept, and so the window of a QP with extensions. A power of two.
const holdSpan = 256

// A HoldPool is the memory in which early packets wait. The queue pairs of one
// queue share it, under the progress lock: what they may take together is
// bounded, and a QP that gets none drops early packets, which is only slower.
// Its memory comes with the first QP that has extensions.
type HoldPool struct {
	free          []*heldPacket
	packets, size int // to be made, 0 packets when they are
}

// A heldPacket is a packet with its bytes.
type heldPacket struct {
	packet wire.Packet
	bytes  []byte
}

// NewHoldPool returns a pool of packets of up to size bytes from the network
// header through the ICRC.
func NewHoldPool(packets, size int) *HoldPool {
	return &HoldPool{packets: packets, size: size}
}

// fill makes the memory.
func (p *HoldPool) fill() {
	slab := make([]byte, p.packets*p.size)
	for i := range p.packets {
		p.free = append(p.free, &heldPacket{bytes: slab[i*p.size:][:p.size:p.size]})
	}
	p.packets = 0
}

// Free returns how many more packets the pool can take.
func (p *HoldPool) Free() int { return len(p.free) + p.packets }

// A holdRing keeps packets of one direction by PSN, less than holdSpan ahead of
// the awaited one.
type holdRing struct {
	slots [holdSpan]*heldPacket
	n     int
	base  wire.PSN // nothing before it is kept
}

// slot is the place of a PSN.
func (h *holdRing) slot(psn wire.PSN) **heldPacket { return &h.slots[psn%holdSpan] }

// has reports whether a PSN is kept.
func (h *holdRing) has(psn wire.PSN) bool {
	held := *h.slot(psn)
	return held != nil && held.packet.BTH.PSN == psn
}

// put keeps a copy of a packet whose PSN lies ahead of base. It reports false
// when there is no room for it.
func (h *holdRing) put(pool *HoldPool, p *wire.Packet) bool {
	if uint32(p.BTH.PSN.Sub(uint32(h.base))) >= holdSpan || len(pool.free) == 0 {
		return false
	}
	last := len(pool.free) - 1
	held := pool.free[last]
	packet, ok := p.Hold(held.bytes)
	if !ok {
		return false
	}
	held.packet = packet
	pool.free = pool.free[:last]
	*h.slot(p.BTH.PSN) = held
	h.n++
	return true
}

// take returns the packet with a PSN, nil when it is not there. The packet is
// good until the next put.
func (h *holdRing) take(pool *HoldPool, psn wire.PSN) *wire.Packet {
	if !h.has(psn) {
		return nil
	}
	held := *h.slot(psn)
	h.drop(pool, psn)
	return &held.packet
}

func (h *holdRing) drop(pool *HoldPool, psn wire.PSN) {
	s := h.slot(psn)
	pool.free = append(pool.free, *s)
	*s = nil
	h.n--
}

// advance moves base to the awaited PSN and gives back what lies before it.
func (h *holdRing) advance(pool *HoldPool, to wire.PSN) {
	for steps := uint32(to.Sub(uint32(h.base))); h.n > 0 && steps > 0; steps-- {
		if h.has(h.base) {
			h.drop(pool, h.base)
		}
		h.base = h.base.Add(1)
	}
	h.base = to
}

// clear gives everything back.
func (h *holdRing) clear(pool *HoldPool) {
	for i, held := range h.slots {
		if held != nil {
			pool.free = append(pool.free, held)
			h.slots[i] = nil
		}
	}
	h.n = 0
}

// hole returns the first PSN from psn on that is kept, limit when none is before
// it.
func (h *holdRing) hole(psn, limit wire.PSN) wire.PSN {
	if h.n == 0 {
		return limit
	}
	for range holdSpan {
		if psn == limit || h.has(psn) {
			return psn
		}
		psn = psn.Add(1)
	}
	return limit
}

// bits writes which of the PSNs behind psn are kept: bit i, counted from the
// lowest of the first byte, stands for psn + 1 + i.
func (h *holdRing) bits(psn wire.PSN, dst []byte) {
	for i := range dst {
		dst[i] = 0
		for bit := range 8 {
			if h.has(psn.Add(uint32(1 + 8*i + bit))) {
				dst[i] |= 1 << bit
			}
		}
	}
}
