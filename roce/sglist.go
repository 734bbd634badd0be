package roce

import (
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// gather copies payload from the pieces of a work request, beginning off bytes
// into them.
func (q *QP) gather(by mem.Accessor, list []SGE, off uint32, dst []byte) mem.Fault {
	return queue.Gather(q.keys, by, list, off, dst)
}

// scatter copies payload to the pieces of a work request, beginning off bytes
// into them. The pieces have room for it.
func (q *QP) scatter(by mem.Accessor, list []SGE, off uint32, src []byte) mem.Fault {
	return queue.Scatter(q.keys, by, list, off, src)
}

// scatterPacket copies the payload of a packet, in its two parts.
func (q *QP) scatterPacket(by mem.Accessor, list []SGE, off uint32, p *wire.Packet) mem.Fault {
	if fault := q.scatter(by, list, off, p.Payload); fault != mem.OK || len(p.PayloadTail) == 0 {
		return fault
	}
	return q.scatter(by, list, off+uint32(len(p.Payload)), p.PayloadTail)
}
