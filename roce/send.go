package roce

import (
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// executeSend places one packet of a SEND in the receive in hand.
func (s *responder) executeSend(now Time, p *wire.Packet) (Reason, wire.Syndrome) {
	if s.kind == msgNone {
		if !s.takeReceive() {
			return s.noReceive()
		}
		s.placed, s.since = 0, s.keys().Epoch()
	}
	n := p.PayloadLen()
	if !p.Spec.Payload.Allows(n, int(s.pmtu())) {
		return reasonLength, wire.NAKInvalidRequest
	}
	if uint32(n) > s.recv.Length-s.placed {
		return reasonFit, s.unfit(now)
	}
	if p.Spec.Class&(wire.ClassFirst|wire.ClassLast|wire.ClassInv) ==
		wire.ClassFirst|wire.ClassLast && n <= int(s.inline) {
		return s.executeSmallSend(now, p)
	}
	s.receiveCQ().FlushInline()
	switch s.scatterPacket(s.recvAccess(), s.recvList(), s.placed, p) {
	case mem.OK:
	case mem.FaultPage:
		return s.refusePage(s.recvList(), uint32(n), p)
	default:
		return reasonLocal, s.noMemory(now)
	}
	// The key is out of use before anybody is told (IBA 9.4.1.1.3).
	if p.Spec.Is(wire.ClassInv) && s.keys().Invalidate(s.peerAccess(0), p.IETH().RKey) != mem.OK {
		return reasonRKey, wire.NAKRemoteAccessError
	}
	s.placed += uint32(n)
	s.kind = msgSend
	if p.Spec.Is(wire.ClassLast) {
		s.finishMessage(p, &Completion{Opcode: WCRecv, ByteLen: s.placed, Time: now}, nil)
	}
	s.accept(p)
	return reasonAdmitted, 0
}

// executeSmallSend ends a SEND of one packet whose completion may have it as inline payload.
func (s *responder) executeSmallSend(now Time, p *wire.Packet) (Reason, wire.Syndrome) {
	var in queue.InlinePayload
	inline, fault := s.deliverPacket(&in, s.recvAccess(), s.recvList(), p)
	switch fault {
	case mem.OK:
	case mem.FaultPage:
		return s.refusePage(s.recvList(), uint32(p.PayloadLen()), p)
	default:
		return reasonLocal, s.noMemory(now)
	}
	wc := Completion{Opcode: WCRecv, ByteLen: uint32(p.PayloadLen()), Time: now}
	if inline {
		s.finishMessage(p, &wc, &in)
	} else {
		s.finishMessage(p, &wc, nil)
	}
	s.accept(p)
	return reasonAdmitted, 0
}

// unfit ends a SEND that does not fit its receive.
func (s *responder) unfit(now Time) wire.Syndrome {
	if s.typ == TypeUC {
		return wire.NAKInvalidRequest // the receive serves the next message
	}
	s.enterError()
	s.failRecv(now, StatusLocLenErr)
	return wire.NAKInvalidRequest
}

// noMemory ends a SEND whose receive names memory that is not the QP's, and with it the
// QP: the receive queue itself is broken.
func (s *responder) noMemory(now Time) wire.Syndrome {
	s.enterError()
	s.failRecv(now, StatusLocProtErr)
	return wire.NAKRemoteOperationalError
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
