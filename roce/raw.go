package roce

import (
	"fmt"

	"xroce/roce/counter"
	"xroce/roce/mem"
)

// minFrame is an Ethernet header; the link pads what is shorter than it wants.
const minFrame = 14

// putRaw writes a whole Ethernet frame (a QP of type RAW_PACKET).
func (r *requester) putRaw(now Time, w *sendWQE, frame []byte) int {
	if w.length < minFrame || int(w.length) > len(frame) {
		r.failRequest(now, r.cur, StatusLocLenErr)
		return 0
	}
	if !r.putPayload(now, w, 0, frame[:w.length]) {
		return 0
	}
	r.sent(r.psn.Add(1), w)
	return int(w.length)
}

// HandleFrame gives a whole Ethernet frame, in its two parts, to a QP of type
// RAW_PACKET. It borrows them. A frame without a receive, or too long for it, is
// dropped and counted.
func (q *QP) HandleFrame(now Time, head, tail []byte) error {
	if q.typ != TypeRawPacket {
		return fmt.Errorf("%w: a frame for a QP of type %s", ErrInvalid, q.typ)
	}
	q.traceAt(now)
	s := &q.rsp
	n := uint32(len(head) + len(tail))
	switch {
	case !q.State().Receives():
		q.count.Inc(stepState.counter())
	case !q.rsp.takeReceive():
		q.count.Inc(stepNoReceive.counter())
	case n > s.wqe.Length:
		q.count.Inc(stepFit.counter())
	default:
		q.rsp.landFrame(now, head, tail)
	}
	q.settle(now)
	return nil
}

// landFrame puts a frame into the receive in hand.
func (s *responder) landFrame(now Time, head, tail []byte) {
	list, n := s.list, uint32(len(head)+len(tail))
	s.since = s.keys.Epoch()
	fault := s.scatter(s.landing(), list, 0, head)
	if fault == mem.OK {
		fault = s.scatter(s.landing(), list, uint32(len(head)), tail)
	}
	switch fault {
	case mem.OK:
		s.count.Inc(counter.RDMARecvs)
		s.completeRecv(&Completion{Opcode: WCRecv, ByteLen: n, Time: now}, false)
	case mem.FaultPage:
		s.wantPages(s.landing(), list, 0, n, mem.LocalWrite)
		s.count.Inc(stepPage.counter())
	default:
		s.completeRecv(&Completion{Status: StatusLocProtErr, Time: now}, true)
		s.enterError()
	}
}
