package roce

import "xroce/roce/wire"

// handleUnreliable takes a UC request (IBA 9.8.2). There are no responses. A packet
// that is not the expected one, or that cannot be executed, ends its message;
// what follows is dropped up to the next packet that begins one. The receive in
// hand serves the next message.
func (s *responder) handleUnreliable(now Time, p *wire.Packet) {
	starts := p.Spec.Is(wire.ClassFirst)
	switch psn := p.BTH.PSN; {
	case starts:
		// It begins anew wherever the last one ended.
		if psn != s.psn {
			s.count.Inc(reasonGap.counter())
		}
		s.psn, s.kind = psn, msgNone
	case psn != s.psn:
		s.psn, s.kind = psn.Add(1), msgNone
		s.drop(p, reasonGap)
		return
	case s.kind == msgNone:
		s.psn = psn.Add(1)
		s.drop(p, reasonAfterGap)
		return
	}
	reason, nak := s.execute(now, p)
	if nak == 0 {
		return
	}
	s.drop(p, unreliableReason(reason))
	s.kind = msgNone
	s.psn = p.BTH.PSN.Add(1)
}

// unreliableReason is the reason under which a packet is counted that a reliable
// service would refuse and this one drops.
func unreliableReason(s Reason) Reason {
	switch s {
	case reasonResources:
		return reasonNoReceive
	case reasonPage:
		return reasonPage
	}
	return reasonRefused
}
