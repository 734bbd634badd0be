package recovery

import "xroce/roce/wire"

// A Pool is the memory in which early packets wait. The queue pairs of one queue
// share it, under the progress lock: what they may take together is bounded, and a
// queue pair that gets none drops early packets, which is only slower. Its memory
// comes with the first call of Reserve.
type Pool struct {
	free          []*keptPacket
	packets, size int // to be made, 0 packets when they are
}

// A keptPacket is a packet with its bytes.
type keptPacket struct {
	packet wire.Packet
	bytes  []byte
}

// NewPool returns a pool of packets of up to size bytes from the network header
// through the ICRC.
func NewPool(packets, size int) *Pool { return &Pool{packets: packets, size: size} }

// Reserve makes the memory, once. It is called when a queue pair is about to need it.
func (p *Pool) Reserve() {
	slab := make([]byte, p.packets*p.size)
	for i := range p.packets {
		p.free = append(p.free, &keptPacket{bytes: slab[i*p.size:][:p.size:p.size]})
	}
	p.packets = 0
}

// Free returns how many more packets the pool can take.
func (p *Pool) Free() int { return len(p.free) + p.packets }

// copyOf returns a copy of a packet, nil when there is no room.
func (p *Pool) copyOf(packet *wire.Packet) *keptPacket {
	last := len(p.free) - 1
	if last < 0 {
		return nil
	}
	h := p.free[last]
	kept, ok := packet.CopyTo(h.bytes)
	if !ok {
		return nil
	}
	h.packet = kept
	p.free = p.free[:last]
	return h
}

// put gives a packet back.
func (p *Pool) put(h *keptPacket) { p.free = append(p.free, h) }
