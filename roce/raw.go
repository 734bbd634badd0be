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
		q.count.Inc(reasonState.counter())
	case !q.rsp.takeReceive():
		q.count.Inc(reasonNoReceive.counter())
	case n > s.recv.Length:
		q.count.Inc(reasonFit.counter())
	default:
		q.rsp.placeFrame(now, head, tail)
	}
	q.endCall(now)
	return nil
}

// placeFrame puts a frame into the receive in hand.
func (s *responder) placeFrame(now Time, head, tail []byte) {
	list, n := s.recvList(), uint32(len(head)+len(tail))
	s.since = s.keys.Epoch()
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
		s.completeRecv(&Completion{Status: StatusLocProtErr, Time: now}, true)
		s.enterError()
	}
}
