package roce

import (
	"xroce/roce/counter"
	"xroce/roce/mem"
)

// minFrame is an Ethernet header; the link pads what is shorter than it wants.
const minFrame = 14

// placeFrame puts a frame into the receive in hand.
func (s *responder) placeFrame(now Time, head, tail []byte) {
	list, n := s.recvList(), uint32(len(head)+len(tail))
	s.since = s.keys().Epoch()
	fault := s.scatter(s.recvAccess(), list, 0, head)
	if fault == mem.OK {
		fault = s.scatter(s.recvAccess(), list, uint32(len(head)), tail)
	}
	switch fault {
	case mem.OK:
		s.count.Inc(counter.RDMARecvs)
		s.completeRecv(&Completion{Opcode: WCRecv, ByteLen: n, Time: now}, false)
	case mem.FaultPage:
		s.wantPages(s.recvAccess(), list, 0, n, mem.LocalWrite)
		s.count.Inc(reasonPage.counter())
	default:
		s.enterError()
		s.failRecv(now, StatusLocProtErr)
	}
}
