package roce

import (
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// executeSend places one packet of a SEND in the receive in hand.
func (q *QP) executeSend(now Time, p *wire.Packet) (Step, wire.Syndrome) {
	s := &q.rsp
	if s.kind == msgNone {
		if !q.takeReceive() {
			return stepResources, wire.RNRSyndrome(q.attr.MinRNRTimer)
		}
		s.placed, s.since = 0, q.keys.Epoch()
	}
	n := p.PayloadLen()
	if !p.Spec.Payload.Allows(n, int(q.pmtu)) {
		return stepLength, wire.NAKInvalidRequest
	}
	if uint32(n) > s.wqe.Length-s.placed {
		return stepFit, q.unfit(now)
	}
	if p.Spec.Class&(wire.ClassFirst|wire.ClassLast|wire.ClassInv) ==
		wire.ClassFirst|wire.ClassLast && n <= int(q.inline) {
		return q.executeSmallSend(now, p)
	}
	q.receiveCQ().FlushInline()
	switch q.scatterPacket(q.landing(), s.list, s.placed, p) {
	case mem.OK:
	case mem.FaultPage:
		return q.refusePage(s.list, uint32(n), p)
	default:
		return stepLocal, q.noMemory(now)
	}
	// The key is out of use before anybody is told (IBA 9.4.1.1.3).
	if p.Spec.Is(wire.ClassInv) && q.keys.Invalidate(q.peer(0), p.IETH().RKey) != mem.OK {
		return stepRKey, wire.NAKRemoteAccessError
	}
	s.placed += uint32(n)
	s.kind = msgSend
	if p.Spec.Is(wire.ClassLast) {
		q.finishMessage(p, &Completion{Opcode: WCRecv, ByteLen: s.placed, Time: now}, nil)
	}
	q.accept(p)
	return stepAdmitted, 0
}

// executeSmallSend ends a SEND of one packet whose completion may have it as inline payload.
func (q *QP) executeSmallSend(now Time, p *wire.Packet) (Step, wire.Syndrome) {
	s := &q.rsp
	var in queue.InlinePayload
	inline, fault := q.deliverPacket(&in, q.landing(), s.list, p)
	switch fault {
	case mem.OK:
	case mem.FaultPage:
		return q.refusePage(s.list, uint32(p.PayloadLen()), p)
	default:
		return stepLocal, q.noMemory(now)
	}
	wc := Completion{Opcode: WCRecv, ByteLen: uint32(p.PayloadLen()), Time: now}
	if inline {
		q.finishMessage(p, &wc, &in)
	} else {
		q.finishMessage(p, &wc, nil)
	}
	q.accept(p)
	return stepAdmitted, 0
}

// unfit ends a SEND that does not fit its receive.
func (q *QP) unfit(now Time) wire.Syndrome {
	if q.typ == TypeUC {
		return wire.NAKInvalidRequest // the receive serves the next message
	}
	q.completeRecv(&Completion{Status: StatusLocLenErr, Time: now}, true)
	return wire.NAKInvalidRequest
}

// noMemory ends a SEND whose receive names memory that is not the QP's.
func (q *QP) noMemory(now Time) wire.Syndrome {
	q.completeRecv(&Completion{Status: StatusLocProtErr, Time: now}, true)
	return wire.NAKRemoteOperationalError
}
