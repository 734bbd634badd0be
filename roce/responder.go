package roce

import (
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// The responder executes the peer's request packets, in the order of PSNs and
// each once. A request passes named steps: PSN, opcode sequence, rights of the
// QP, resources, length, memory key, execution, acknowledgement (IBA 9.7.4).
type responder struct {
	psn wire.PSN // the PSN expected next
	msn uint32   // messages completed, 24 bits
	// gap says that the peer was told that psn is missing or not taken; it is
	// told once.
	gap bool

	// The message that is under way, of first or middle packets received.
	kind   msgKind
	held   bool   // its SEND data goes to the oldest receive
	placed uint32 // bytes of it already placed
	va     uint64 // WRITE: where the next byte goes
	rkey   uint32 // WRITE: with which key
	left   uint32 // WRITE: bytes still to come

	reads    []readResource // the last READs, a ring
	nextRead int
	fifo     answerQueue
}

type msgKind uint8

const (
	msgNone msgKind = iota
	msgSend
	msgWrite
)

// handleRequest takes a request packet.
func (q *QP) handleRequest(now Time, p *wire.Packet) {
	s := &q.rsp
	switch d := p.BTH.PSN.Diff(s.psn); {
	case d < 0:
		q.handleDuplicate(p)
		return
	case d > 0:
		q.handleGap()
		return
	}
	step, nak := q.execute(now, p)
	switch {
	case nak == 0:
		return
	case nak.IsRNRNAK():
		q.lastDrop = step
		q.count.Inc(counter.SendRNR)
		s.gap = true // packets behind the refused one are no news
		s.fifo.nak(s.psn, nak)
	default:
		q.refuse(now, p, step, nak)
	}
}

// refuse sends a NAK that ends the QP (IBA 9.9.3). A receive that the message
// had taken reports why, all others are flushed.
func (q *QP) refuse(now Time, p *wire.Packet, step Step, nak wire.Syndrome) {
	s := &q.rsp
	q.lastDrop = step
	q.count.Inc(counter.SentFatalNAK)
	s.fifo.nak(s.psn, nak)
	// A WRITE takes its receive at its end, when the step of resources is over.
	if s.held || (p.Spec.Is(wire.ClassWrite|wire.ClassReceive) && step > stepResources) {
		status := StatusRemInvReqErr
		if nak == wire.NAKRemoteAccessError {
			status = StatusLocAccessErr
		}
		q.completeRecv(&Completion{Status: status, Time: now}, true)
	}
	q.enterError(now)
}

// handleGap asks once for the packet that is missing.
func (q *QP) handleGap() {
	s := &q.rsp
	if s.gap {
		q.lastDrop = stepAfterGap
		q.count.Inc(counter.DropAfterGap)
		return
	}
	q.lastDrop = stepGap
	q.count.Inc(counter.OutOfSequence)
	q.count.Inc(counter.SentSeqNAK)
	s.gap = true
	s.fifo.nak(s.psn, wire.NAKPSNSequenceError)
}

// execute runs the steps of a request with the expected PSN. It returns the
// syndrome to refuse it with, 0 when it was executed.
func (q *QP) execute(now Time, p *wire.Packet) (Step, wire.Syndrome) {
	switch c := p.Spec.Class; {
	case !q.rsp.inSequence(c):
		return stepSequence, wire.NAKInvalidRequest
	case c&wire.ClassSend != 0 && c&wire.ClassInv == 0:
		return q.executeSend(now, p)
	case c&wire.ClassWrite != 0:
		return q.executeWrite(now, p)
	case c&wire.ClassRead != 0:
		return q.executeRead(p)
	}
	// Atomics, FLUSH, ATOMIC WRITE and SEND with invalidate: this QP grants
	// none of them.
	return stepRights, wire.NAKInvalidRequest
}

// inSequence tells whether a packet of class c may follow the one before it.
func (s *responder) inSequence(c wire.Class) bool {
	starts := c&(wire.ClassMiddle|wire.ClassLast) == 0 || c&wire.ClassFirst != 0
	if s.kind == msgNone {
		return starts
	}
	if starts {
		return false
	}
	return c&wire.ClassSend != 0 == (s.kind == msgSend)
}

// executeSend places one packet of a SEND in the oldest receive.
func (q *QP) executeSend(now Time, p *wire.Packet) (Step, wire.Syndrome) {
	s := &q.rsp
	i := q.rq.head.Load()
	if !s.held {
		if i == q.rq.tail.Load() {
			return stepResources, wire.RNRSyndrome(q.attr.MinRNRTimer)
		}
		s.held, s.placed = true, 0
	}
	n := p.PayloadLen()
	if !p.Spec.Payload.Allows(n, int(q.pmtu)) {
		return stepLength, wire.NAKInvalidRequest
	}
	w := q.rq.at(i)
	if uint32(n) > w.length-s.placed {
		q.completeRecv(&Completion{Status: StatusLocLenErr, Time: now}, true)
		return stepLength, wire.NAKInvalidRequest
	}
	list := q.rq.sgList(i, int(w.numSGE))
	if q.scatter(list, s.placed, p.Payload) != mem.OK ||
		q.scatter(list, s.placed+uint32(len(p.Payload)), p.PayloadTail) != mem.OK {
		q.completeRecv(&Completion{Status: StatusLocProtErr, Time: now}, true)
		return stepLocal, wire.NAKRemoteOperationalError
	}
	s.placed += uint32(n)
	s.kind = msgSend
	if p.Spec.Is(wire.ClassLast) {
		wc := Completion{Opcode: WCRecv, ByteLen: s.placed, Time: now}
		q.finishMessage(p, &wc)
	}
	q.accept(p, 1)
	return stepAdmitted, 0
}

// executeWrite places one packet of a WRITE where its first one said.
func (q *QP) executeWrite(now Time, p *wire.Packet) (Step, wire.Syndrome) {
	s := &q.rsp
	spec, n := p.Spec, uint32(p.PayloadLen())
	va, rkey, left := s.va, s.rkey, s.left
	if spec.Has(wire.HasRETH) {
		reth := p.RETH()
		va, rkey, left = reth.VA, reth.RKey, reth.DMALen
		if q.attr.Access&mem.RemoteWrite == 0 {
			return stepRights, wire.NAKInvalidRequest
		}
	}
	consumes := spec.Is(wire.ClassReceive)
	if consumes && q.rq.head.Load() == q.rq.tail.Load() {
		return stepResources, wire.RNRSyndrome(q.attr.MinRNRTimer)
	}
	last := spec.Is(wire.ClassLast)
	if left > MaxMessage || !spec.Payload.Allows(int(n), int(q.pmtu)) ||
		(last && n != left) || (!last && n >= left) {
		return stepLength, wire.NAKInvalidRequest
	}
	if spec.Has(wire.HasRETH) {
		// The whole range is checked at once; a range of nothing needs no key.
		if left > 0 && q.keys.Check(q.domain, rkey, va, int(left), mem.RemoteWrite) != mem.OK {
			return stepRKey, wire.NAKRemoteAccessError
		}
		s.placed = 0
	}
	if n > 0 && !q.place(rkey, va, p) {
		return stepRKey, wire.NAKRemoteAccessError
	}
	s.kind, s.va, s.rkey, s.left = msgWrite, va+uint64(n), rkey, left-n
	s.placed += n
	if last {
		var wc *Completion
		if consumes {
			wc = &Completion{Opcode: WCRecvRDMAWithImm, ByteLen: s.placed, Time: now}
		}
		q.finishMessage(p, wc)
	}
	q.accept(p, 1)
	return stepAdmitted, 0
}

// place stores the payload of a WRITE packet.
func (q *QP) place(rkey uint32, va uint64, p *wire.Packet) bool {
	if q.keys.Store(q.domain, rkey, va, p.Payload, mem.RemoteWrite) != mem.OK {
		return false
	}
	return len(p.PayloadTail) == 0 || q.keys.Store(q.domain, rkey,
		va+uint64(len(p.Payload)), p.PayloadTail, mem.RemoteWrite) == mem.OK
}

// accept moves on to the next PSN and acknowledges when asked to.
func (q *QP) accept(p *wire.Packet, packets uint32) {
	s := &q.rsp
	psn := s.psn
	s.psn, s.gap = psn.Add(packets), false
	if p.BTH.AckReq {
		if s.fifo.ack(psn, s.msn) {
			q.count.Inc(counter.AckDeferred)
		}
	}
}

// finishMessage ends a SEND or a WRITE; wc is nil when it consumes no receive.
func (q *QP) finishMessage(p *wire.Packet, wc *Completion) {
	s := &q.rsp
	s.kind = msgNone
	s.msn = (s.msn + 1) & 0xffffff
	if wc == nil {
		return
	}
	if p.Spec.Has(wire.HasImmDt) {
		wc.Flags, wc.Imm = WCWithImm, p.ImmDt().Data
	}
	q.completeRecv(wc, p.BTH.SE)
	q.count.Inc(counter.RDMARecvs)
}

// completeRecv completes the oldest receive; its place is free before that shows.
func (q *QP) completeRecv(wc *Completion, solicited bool) {
	i := q.rq.head.Load()
	wc.WRID = q.rq.at(i).wrID
	q.rq.head.Store(i + 1)
	q.rsp.held = false
	q.complete(q.recvCQ, wc, solicited)
}

// handleDuplicate answers a request that was executed before (IBA 9.7.5.1.4).
func (q *QP) handleDuplicate(p *wire.Packet) {
	s := &q.rsp
	q.count.Inc(counter.DuplicateRequest)
	switch c := p.Spec.Class; {
	case c&(wire.ClassSend|wire.ClassWrite) != 0:
		s.fifo.ack(s.psn.Sub(1), s.msn)
	case c&wire.ClassRead != 0:
		if !q.replayRead(p) {
			q.lastDrop = stepReplay
			q.count.Inc(stepReplay.counter())
		}
	}
}
