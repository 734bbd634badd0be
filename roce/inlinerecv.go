package roce

import (
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// Inline receive (scatter to CQE, as mlx5 has it): the completion of a small SEND, of a
// small READ response, or of an atomic response carries the payload. This file has the
// part of the queue pair; see package queue for what becomes of it.

// inlines prepares the payload of a packet for the completion of a work request with
// these pieces, and reports whether that can carry it. The fault is that of memory that
// cannot take it at all.
func (q *QP) inlines(in *queue.InlinePayload, by mem.Accessor, list []SGE, head, tail []byte) (
	bool, mem.Fault,
) {
	if n := len(head) + len(tail); n > int(q.inline) || n == 0 {
		return false, mem.OK
	}
	return in.Prepare(q.keys, by, list, head, tail)
}

// deliverPacket is scatterPacket for a message of one packet that makes a
// completion: it reports whether the payload is in in, for the completion to carry.
func (q *QP) deliverPacket(in *queue.InlinePayload, by mem.Accessor, list []SGE, p *wire.Packet) (
	bool, mem.Fault,
) {
	if ok, fault := q.inlines(in, by, list, p.Payload, p.PayloadTail); ok || fault != mem.OK {
		return ok, fault
	}
	q.receiveCQ().FlushInline()
	return false, q.scatterPacket(by, list, 0, p)
}
