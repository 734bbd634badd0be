package roce

import "xroce/roce/wire"

// findSRQ finds the shared receive queue of an XRC request. One message has one.
func (s *responder) findSRQ(p *wire.Packet) bool {
	srq := s.xrcd.Find(p.XRCETH().SRQN)
	if srq == nil || (s.kind != msgNone && srq != s.srq) {
		return false
	}
	if s.recvTaken && srq != s.srq {
		return false
	}
	if s.srq != nil && srq != s.srq {
		s.srq.CQ().FlushInline() // what comes now comes after it
	}
	s.srq = srq
	return true
}
