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
func (t *transport) inlines(
	in *queue.InlinePayload, by mem.Accessor, list []SGE, head, tail []byte,
) (bool, mem.Fault) {
	if n := len(head) + len(tail); n > int(t.inline) || n == 0 {
		return false, mem.OK
	}
	return in.Prepare(t.keys, by, list, head, tail)
}

// deliverPacket is scatterPacket for a message of one packet that makes a
// completion: it reports whether the payload is in in, for the completion to carry.
func (s *responder) deliverPacket(
	in *queue.InlinePayload, by mem.Accessor, list []SGE, p *wire.Packet,
) (bool, mem.Fault) {
	if ok, fault := s.inlines(in, by, list, p.Payload, p.PayloadTail); ok || fault != mem.OK {
		return ok, fault
	}
	s.receiveCQ().FlushInline()
	return false, s.scatterPacket(by, list, 0, p)
}

// carriesInline reports whether the completion of a work request may carry the
// response's data as inline payload. Else the data is written at once.
func (r *requester) carriesInline(w *sendWQE) bool {
	return w.length <= uint32(r.inline) && w.length > 0 && r.signals(w)
}

// takeSmall ends the oldest work request with a response that has all of its data.
func (r *requester) takeSmall(now Time, w *sendWQE, p *wire.Packet, head, tail []byte) {
	list := r.sq.SGList(r.sq.Head(), int(w.numSGE))
	var in queue.InlinePayload
	inline, fault := false, mem.OK
	if r.carriesInline(w) {
		inline, fault = r.inlines(&in, r.localAccess(w), list, head, tail)
	}
	if !inline && fault == mem.OK {
		r.sendCQ.FlushInline()
		fault = r.scatter(r.localAccess(w), list, 0, head)
		if fault == mem.OK {
			fault = r.scatter(r.localAccess(w), list, uint32(len(head)), tail)
		}
	}
	if fault != mem.OK {
		r.missResult(now, w, p, 0, fault)
		return
	}
	r.una = w.last.Add(1)
	if inline {
		r.deliverSend(now, w, w.length, &in)
	} else {
		r.deliverSend(now, w, w.length, nil)
	}
	r.progress(now)
}
