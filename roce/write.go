package roce

import (
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// executeWrite places one packet of a WRITE where its first one said.
func (s *responder) executeWrite(now Time, p *wire.Packet) (Reason, wire.Syndrome) {
	spec, n := p.Spec, uint32(p.PayloadLen())
	va, rkey, left := s.va, s.rkey, s.left
	if spec.Has(wire.HasRETH) {
		reth := p.RETH()
		va, rkey, left = reth.VA, reth.RKey, reth.DMALen
		if s.attr.Access&mem.RemoteWrite == 0 {
			return reasonRights, wire.NAKInvalidRequest
		}
	}
	consumes := spec.Is(wire.ClassReceive)
	if consumes && !s.takeReceive() {
		return s.noReceive()
	}
	last := spec.Is(wire.ClassLast)
	if left > MaxMessage || !spec.Payload.Allows(int(n), int(s.pmtu())) ||
		(last && n != left) || (!last && n >= left) {
		return reasonLength, wire.NAKInvalidRequest
	}
	if spec.Has(wire.HasRETH) {
		// The whole range is checked at once; a range of nothing needs no key.
		s.placed, s.since = 0, s.keys().Epoch()
		if left > 0 && s.common.recent.Check(s.keys(), s.peerAccess(s.since), rkey, va, int(left),
			mem.RemoteWrite) != mem.OK {
			return reasonRKey, wire.NAKRemoteAccessError
		}
	}
	if n > 0 {
		s.receiveCQ().FlushInline()
		switch s.place(rkey, va, p) {
		case mem.OK:
		case mem.FaultPage:
			s.keys().Ready(s.peerAccess(s.since), rkey, va, int(left), mem.RemoteWrite) // all of it
			return s.absent()
		default:
			return reasonRKey, wire.NAKRemoteAccessError
		}
	}
	s.kind, s.va, s.rkey, s.left = msgWrite, va+uint64(n), rkey, left-n
	s.placed += n
	if last {
		var wc *Completion
		if consumes {
			wc = &Completion{Opcode: WCRecvRDMAWithImm, ByteLen: s.placed, Time: now}
		}
		s.finishMessage(p, wc, nil)
	}
	s.accept(p)
	return reasonAdmitted, 0
}

// place stores the payload of a WRITE packet.
func (s *responder) place(rkey uint32, va uint64, p *wire.Packet) mem.Fault {
	by := s.peerAccess(s.since)
	f := s.common.recent.Store(s.keys(), by, rkey, va, p.Payload, mem.RemoteWrite)
	if f != mem.OK || len(p.PayloadTail) == 0 {
		return f
	}
	return s.common.recent.Store(s.keys(), by, rkey, va+uint64(len(p.Payload)), p.PayloadTail,
		mem.RemoteWrite)
}
