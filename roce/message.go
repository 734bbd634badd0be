package roce

import (
	"xroce/roce/counter"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// This file moves on from one packet, and from one message, to the next.

// accept moves on to the next PSN and acknowledges when asked to.
func (s *responder) accept(p *wire.Packet) {
	psn := s.psn
	s.psn, s.gap, s.missed = psn.Add(1), false, 0
	if p.BTH.AckReq && s.typ != TypeUC {
		if s.responses.ack(psn, s.credits(), s.msn) {
			s.count.Inc(counter.AckDeferred)
		}
	}
}

// finishMessage ends a SEND or a WRITE; wc is nil when it consumes no receive, and in
// when its completion carries no payload.
func (s *responder) finishMessage(p *wire.Packet, wc *Completion, in *queue.InlinePayload) {
	s.kind = msgNone
	s.msn = (s.msn + 1) & 0xffffff
	if wc == nil {
		return
	}
	switch {
	case p.Spec.Has(wire.HasImmDt):
		wc.Flags, wc.Imm = WCWithImm, p.ImmDt().Data
	case p.Spec.Has(wire.HasIETH):
		wc.Flags, wc.InvalidatedKey = WCWithInv, p.IETH().RKey
	}
	s.deliverRecv(wc, p.BTH.SE, in)
	s.count.Inc(counter.RDMARecvs)
}
