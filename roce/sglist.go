package roce

import (
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// gather copies payload from the pieces of a work request, beginning off bytes
// into them.
func (t *transport) gather(by mem.Accessor, list []SGE, off uint32, dst []byte) mem.Fault {
	if n := uint32(len(dst)); n > 0 && off < list[0].Length && n <= list[0].Length-off {
		s := &list[0]
		return t.common.recent.Load(t.keys(), by, s.LKey, s.Addr+uint64(off), dst, 0)
	}
	return queue.Gather(t.keys(), by, list, off, dst)
}

// scatter copies payload to the pieces of a work request, beginning off bytes
// into them. The pieces have room for it.
func (t *transport) scatter(by mem.Accessor, list []SGE, off uint32, src []byte) mem.Fault {
	if n := uint32(len(src)); n > 0 && off < list[0].Length && n <= list[0].Length-off {
		s := &list[0]
		return t.common.recent.Store(t.keys(), by, s.LKey, s.Addr+uint64(off), src,
			mem.LocalWrite)
	}
	return queue.Scatter(t.keys(), by, list, off, src)
}

// scatterPacket copies the payload of a packet, in its two parts.
func (t *transport) scatterPacket(
	by mem.Accessor, list []SGE, off uint32, p *wire.Packet,
) mem.Fault {
	if fault := t.scatter(by, list, off, p.Payload); fault != mem.OK || len(p.PayloadTail) == 0 {
		return fault
	}
	return t.scatter(by, list, off+uint32(len(p.Payload)), p.PayloadTail)
}
