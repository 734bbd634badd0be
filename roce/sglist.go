package roce

import (
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// gather copies payload from the pieces of a work request, beginning off bytes
// into them.
func (q *QP) gather(by mem.Accessor, list []SGE, off uint32, dst []byte) mem.Fault {
	for i := 0; len(dst) > 0; i++ {
		s := &list[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		n := min(uint32(len(dst)), s.Length-off)
		fault := q.keys.Load(by, s.LKey, s.Addr+uint64(off), dst[:n], 0)
		if fault != mem.OK {
			return fault
		}
		dst, off = dst[n:], 0
	}
	return mem.OK
}

// scatter copies payload to the pieces of a work request, beginning off bytes
// into them. The pieces have room for it.
func (q *QP) scatter(by mem.Accessor, list []SGE, off uint32, src []byte) mem.Fault {
	return scatter(q.keys, by, list, off, src)
}

func scatter(keys *mem.Keys, by mem.Accessor, list []SGE, off uint32, src []byte) mem.Fault {
	for i := 0; len(src) > 0; i++ {
		s := &list[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		n := min(uint32(len(src)), s.Length-off)
		fault := keys.Store(by, s.LKey, s.Addr+uint64(off), src[:n], mem.LocalWrite)
		if fault != mem.OK {
			return fault
		}
		src, off = src[n:], 0
	}
	return mem.OK
}

// scatterPacket copies the payload of a packet, in its two parts.
func (q *QP) scatterPacket(by mem.Accessor, list []SGE, off uint32, p *wire.Packet) mem.Fault {
	if fault := q.scatter(by, list, off, p.Payload); fault != mem.OK || len(p.PayloadTail) == 0 {
		return fault
	}
	return q.scatter(by, list, off+uint32(len(p.Payload)), p.PayloadTail)
}
