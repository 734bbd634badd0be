package roce

import (
	"fmt"

	"xroce/roce/counter"
	"xroce/roce/mem"
)

// minFrame is an Ethernet header; the link pads what is shorter than it wants.
const minFrame = 14

// putRaw writes a whole Ethernet frame (a QP of type RAW_PACKET).
func (q *QP) putRaw(now Time, w *sendWQE, frame []byte) int {
	if w.length < minFrame || int(w.length) > len(frame) {
		q.failRequest(now, q.req.cur, StatusLocLenErr)
		return 0
	}
	if !q.putPayload(now, w, 0, frame[:w.length]) {
		return 0
	}
	q.sent(q.req.psn.Add(1), w)
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
	case !q.takeReceive():
		q.count.Inc(stepNoReceive.counter())
	case n > s.wqe.Length:
		q.count.Inc(stepFit.counter())
	default:
		q.landFrame(now, head, tail)
	}
	q.settle(now)
	return nil
}

// landFrame puts a frame into the receive in hand.
func (q *QP) landFrame(now Time, head, tail []byte) {
	list, n := q.rsp.list, uint32(len(head)+len(tail))
	q.rsp.since = q.keys.Epoch()
	fault := q.scatter(q.landing(), list, 0, head)
	if fault == mem.OK {
		fault = q.scatter(q.landing(), list, uint32(len(head)), tail)
	}
	switch fault {
	case mem.OK:
		q.count.Inc(counter.RDMARecvs)
		q.completeRecv(&Completion{Opcode: WCRecv, ByteLen: n, Time: now}, false)
	case mem.FaultPage:
		q.wantPages(q.landing(), list, 0, n, mem.LocalWrite)
		q.count.Inc(stepPage.counter())
	default:
		q.completeRecv(&Completion{Status: StatusLocProtErr, Time: now}, true)
		q.enterError(now)
	}
}
