package roce

import "xroce/roce/wire"

// putAck writes an acknowledge packet, positive or negative.
func (s *responder) putAck(psn wire.PSN, syndrome wire.Syndrome, msn uint32, frame []byte) int {
	b := frame[s.path.Len():]
	spec := s.putBTH(b, &wire.BTH{Opcode: wire.RCAck, PSN: psn}, 0)
	wire.AETH{Syndrome: syndrome, MSN: msn}.Put(b[spec.Offsets[wire.HeaderAETH]:])
	return s.seal(&s.path, frame, wire.BTHLen+int(spec.HeaderLen), 0)
}

// credits is the syndrome of a positive acknowledge: how many receives are
// posted, with the one that was taken, as its message is not in the MSN yet. A shared
// receive queue serves others as well, so its count is not told; nor is any without
// end-to-end flow control.
func (s *responder) credits() wire.Syndrome {
	if s.srq != nil || !s.typ.HasRecv() || s.attr.NoFlowControl {
		return wire.ACKNoCredits
	}
	n := s.rq.Posted()
	if noCredits := n == 0; noCredits != s.noCredits.Load() {
		s.noCredits.Store(noCredits)
		// A post between the two would not have seen the mark.
		n = s.rq.Posted()
	}
	return wire.ACKSyndrome(wire.CreditCode(n))
}

// grantCredit writes an unsolicited acknowledge, because the last one said that no
// receive was posted and now there is one.
func (s *responder) grantCredit(frame []byte) int {
	if s.rq.Empty() || !s.State().Receives() {
		return 0
	}
	return s.putAck(s.psn.Sub(1), s.credits(), s.msn, frame)
}
