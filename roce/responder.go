package roce

import (
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// The responder executes the peer's request packets, in the order of PSNs and
// each once. A request passes named steps: PSN, opcode sequence, rights of the
// QP, resources, length, memory key, execution, acknowledgement (IBA 9.7.4).
type responder struct {
	fifo answerQueue

	psn wire.PSN // the PSN expected next
	msn uint32   // messages completed, 24 bits
	// gap says that the peer was told that psn is missing or not taken; it is
	// told once.
	gap bool
	// refused says that the expected packet came and met no receive: packets
	// behind it say nothing about a loss.
	refused      bool
	kind         msgKind // of the message that is under way
	held         bool    // a receive is in hand
	depth        uint8   // how many requests may be remembered
	nextResource uint8   // where the next one is
	pageWait     bool    // the answer in front waits for a page
	missed       uint8   // how often in a row pages of psn, or of that answer, were absent

	// The message that is under way, of first or middle packets received.
	placed uint32 // bytes of it already placed
	since  mem.Epoch
	va     uint64 // WRITE: where the next byte goes
	rkey   uint32 // WRITE: with which key
	left   uint32 // WRITE: bytes still to come

	// The receive in hand. One of the QP's own leaves its queue when it is
	// complete; one of a shared queue left it already, with its pieces.
	wqe  queue.RecvWQE
	list []SGE
	sges []SGE // room for the pieces of a shared receive

	resources []resource // the last READs, atomics and their like, a ring
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
		if q.sel == nil || !q.holdRequest(now, p, uint32(d)) {
			q.handleGap(p)
		}
		return
	}
	for {
		step, nak := q.execute(now, p)
		switch {
		case nak == 0:
		case nak.IsRNRNAK():
			q.note(p, step)
			q.count.Inc(counter.SendRNR)
			s.gap, s.refused = true, true // packets behind the refused one are no news
			s.fifo.nak(s.psn, nak)
			return
		default:
			q.refuse(now, p, step, nak)
			return
		}
		if q.sel == nil || q.State() == StateErr {
			return
		}
		if p = q.nextHeldRequest(now); p == nil {
			return
		}
	}
}

// refuse sends a NAK that ends the QP (IBA 9.9.3). A receive that the message
// had taken reports why, all others are flushed; where there is none to report
// it, an event does.
func (q *QP) refuse(now Time, p *wire.Packet, step Step, nak wire.Syndrome) {
	s := &q.rsp
	q.note(p, step)
	q.count.Inc(counter.SentFatalNAK)
	s.fifo.nak(s.psn, nak)
	status, event := StatusRemInvReqErr, EventQPReqErr
	if nak == wire.NAKRemoteAccessError {
		status, event = StatusLocAccessErr, EventQPAccessErr
	}
	switch {
	case s.held:
		q.completeRecv(&Completion{Status: status, Time: now}, true)
	case step == stepLocal || step == stepFit:
		// The receive that was too small, or not the QP's, told already.
	default:
		q.raise(event)
	}
	q.enterError(now)
}

// handleGap asks once for the packet that is missing.
func (q *QP) handleGap(p *wire.Packet) {
	s := &q.rsp
	if s.gap {
		q.drop(p, stepAfterGap)
		return
	}
	q.drop(p, stepGap)
	q.count.Inc(counter.SentSeqNAK)
	s.gap, s.refused = true, false
	s.fifo.nak(s.psn, wire.NAKPSNSequenceError)
}

// execute runs the steps of a request with the expected PSN. It returns the
// syndrome to refuse it with, 0 when it was executed.
func (q *QP) execute(now Time, p *wire.Packet) (Step, wire.Syndrome) {
	c := p.Spec.Class
	if !q.rsp.inSequence(c) {
		return stepSequence, wire.NAKInvalidRequest
	}
	if q.typ == TypeXRCRecv && !q.findSRQ(p) {
		return stepSRQ, wire.NAKInvalidRequest
	}
	switch {
	case c&wire.ClassSend != 0:
		return q.executeSend(now, p)
	case c&wire.ClassWrite != 0:
		return q.executeWrite(now, p)
	case c&wire.ClassRead != 0:
		return q.executeRead(p)
	case c&wire.ClassAtomic != 0:
		return q.executeAtomic(p)
	case c&wire.ClassFlush != 0:
		return q.executeFlush(p)
	case c&wire.ClassAtomicWrite != 0:
		return q.executeAtomicWrite(p)
	}
	return stepRights, wire.NAKInvalidRequest
}

// inSequence reports whether a packet of class c may follow the one before it.
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

// peer is on whose behalf a request accesses memory that its message began with
// then.
func (q *QP) peer(since mem.Epoch) mem.Accessor {
	by := mem.Accessor{Domain: q.domain, Party: &q.party, Since: since}
	if q.typ == TypeXRCRecv {
		by.Domain = q.srq.Domain()
	}
	return by
}

// landing is on whose behalf the receive in hand is written. A shared receive queue
// has a protection domain of its own (IBA 10.2.9.1).
func (q *QP) landing() mem.Accessor {
	by := mem.Accessor{Domain: q.domain, Since: q.rsp.since}
	if q.srq != nil {
		by.Domain = q.srq.Domain()
	}
	return by
}

// takeReceive makes sure that a receive is in hand.
func (q *QP) takeReceive() bool {
	s := &q.rsp
	if s.held {
		return true
	}
	if q.srq != nil {
		room := s.sges
		if q.typ == TypeXRCRecv && len(room) < q.srq.MaxSGE() {
			s.sges = make([]SGE, q.srq.MaxSGE())
			room = s.sges
		}
		w, ok := q.srq.Take(room)
		if !ok {
			return false
		}
		s.wqe, s.list = w, room[:w.NumSGE]
	} else {
		if q.rq.Empty() {
			return false
		}
		i := q.rq.Head()
		s.wqe = *q.rq.At(i)
		s.list = q.rq.SGList(i, int(s.wqe.NumSGE))
	}
	s.held = true
	return true
}

// completeRecv completes the receive in hand; its place is free before that
// shows.
func (q *QP) completeRecv(wc *Completion, solicited bool) {
	q.deliverRecv(wc, solicited, nil)
}

// deliverRecv is completeRecv with the inline payload of the completion, nil for
// none.
func (q *QP) deliverRecv(wc *Completion, solicited bool, in *queue.InlinePayload) {
	s := &q.rsp
	wc.WRID = s.wqe.WRID
	if q.srq == nil {
		q.rq.Pop()
	}
	s.held = false
	q.deliver(q.receiveCQ(), wc, solicited, in)
}

// receiveCQ is where the receive in hand completes.
func (q *QP) receiveCQ() *CQ {
	if q.typ == TypeXRCRecv {
		return q.srq.CQ()
	}
	return q.recvCQ
}

// accept moves on to the next PSN and acknowledges when asked to.
func (q *QP) accept(p *wire.Packet) {
	s := &q.rsp
	psn := s.psn
	s.psn, s.gap, s.missed = psn.Add(1), false, 0
	if p.BTH.AckReq && q.typ != TypeUC {
		if s.fifo.ack(psn, q.credits(), s.msn) {
			q.count.Inc(counter.AckDeferred)
		}
	}
}

// finishMessage ends a SEND or a WRITE; wc is nil when it consumes no receive, and in
// when no payload rides in it.
func (q *QP) finishMessage(p *wire.Packet, wc *Completion, in *queue.InlinePayload) {
	s := &q.rsp
	s.kind = msgNone
	s.msn = (s.msn + 1) & 0xffffff
	if wc == nil {
		return
	}
	switch {
	case p.Spec.Has(wire.HasImmDt):
		wc.Flags, wc.Imm = WCWithImm, p.ImmDt().Data
	case p.Spec.Has(wire.HasIETH):
		wc.Flags, wc.InvalidatedKey = WCWithInv, p.IETH().RKey
	}
	q.deliverRecv(wc, p.BTH.SE, in)
	q.count.Inc(counter.RDMARecvs)
}

// handleDuplicate answers a request that was executed before (IBA 9.7.5.1.4).
func (q *QP) handleDuplicate(p *wire.Packet) {
	s := &q.rsp
	q.count.Inc(counter.DuplicateRequest)
	if p.Spec.Class&(wire.ClassSend|wire.ClassWrite) != 0 {
		if p.BTH.AckReq && q.tellsAgain() {
			s.fifo.nak(s.psn, wire.NAKPSNSequenceError)
			return
		}
		s.fifo.ack(s.psn.Sub(1), q.credits(), s.msn)
		return
	}
	if !q.replay(p) {
		q.drop(p, stepReplay)
	}
}
