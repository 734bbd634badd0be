package roce

import (
	"sync/atomic"

	"xroce/roce/clock"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/recovery"
	"xroce/roce/wire"
)

// The responder executes the peer's request packets, in the order of PSNs and
// each once. A request passes named checks: PSN, opcode sequence, rights of the
// QP, resources, length, memory key, execution, acknowledgement (IBA 9.7.4).
type responder struct {
	*transport
	receiveState
	early  *earlyRequests // nil without Extensions
	srq    *SRQ           // fixed, or of the message under way on an XRC_RECV; may be nil
	rq     queue.WorkQueue[queue.RecvWQE]
	recvCQ *CQ
	xrcd   *XRCD
	sges   []SGE // room for the pieces of a shared receive
	// noCredits says that the peer was told that no receive is posted.
	noCredits atomic.Bool
}

// receiveState is what RESET forgets of a responder.
type receiveState struct {
	responses responseQueue

	psn wire.PSN // the PSN expected next
	msn uint32   // messages completed, 24 bits
	// gap says that a NAK told the peer that psn is missing or was refused: a gap has
	// one NAK.
	gap bool
	// refused says that the expected packet came and met no receive: packets
	// behind it say nothing about a loss.
	refused      bool
	kind         msgKind // of the message that is under way
	recvTaken    bool    // a receive is in hand
	depth        uint8   // how many requests may be remembered
	nextResource uint8   // where the next one is
	pageWait     bool    // the response in front waits for a page
	missed       uint8   // how often in a row pages of psn, or of that response, were absent

	// The message that is under way, of first or middle packets received.
	placed uint32 // bytes of it already placed
	since  mem.Epoch
	va     uint64 // WRITE: where the next byte goes
	rkey   uint32 // WRITE: with which key
	left   uint32 // WRITE: bytes still to come

	// The receive in hand. One of the QP's own leaves its queue when it is
	// complete; one of a shared queue left it already, with its pieces.
	recv queue.RecvWQE

	resources []resource // the last READs, atomics and their like, a ring
}

// init makes the receive queue that a new QP is to have.
func (s *responder) init(t *transport, c *QPConfig) error {
	s.transport, s.recvCQ, s.srq, s.xrcd = t, c.RecvCQ, c.SRQ, c.XRCD
	switch {
	case c.SRQ != nil:
		s.sges = make([]SGE, c.SRQ.MaxSGE())
	case c.Type.HasRecv():
		return s.rq.Init("receive queue", c.MaxRecvWR, c.MaxRecvSGE, 0)
	}
	return nil
}

// extend says whether requests that come early wait.
func (s *responder) extend(e Extensions, pool *recovery.Pool) {
	if s.early != nil {
		s.early.clear()
		s.early = nil
	}
	if e != 0 {
		s.early = newEarlyRequests(e, pool)
	}
}

// deadline returns when handleDeadline wants to be called, 0 for never.
func (s *responder) deadline() Time {
	at := Time(0)
	if s.pageWait {
		at = s.waitsUntil()
	}
	return clock.Sooner(at, s.gapDeadline())
}

// gapDeadline is when a gap before early requests becomes a loss, 0 for never.
func (s *responder) gapDeadline() Time {
	if s.early == nil {
		return 0
	}
	return s.early.gap.Deadline()
}

// handleDeadline ends waits whose time has come.
func (s *responder) handleDeadline(now Time) {
	if s.pageWait && now >= s.waitsUntil() {
		s.pageWait = false
	}
	if s.early != nil && s.early.gap.Expired(now) {
		s.tellGap()
	}
}

// stop gives back what waits for a gap to close.
func (s *responder) stop() {
	if s.early != nil {
		s.early.clear()
	}
}

// flush completes all receives with a flush error.
func (s *responder) flush(now Time) {
	if s.recvTaken {
		s.completeRecv(&Completion{Status: StatusWRFlushErr, Time: now}, true)
	}
	for i := s.rq.Head(); i != s.rq.Tail(); i++ {
		wc := Completion{WRID: s.rq.At(i).WRID, Status: StatusWRFlushErr, Time: now}
		s.rq.Pop()
		s.complete(s.recvCQ, &wc, true)
	}
}

// shared reports whether receives come from a shared queue.
func (s *responder) shared() bool { return s.srq != nil || s.typ == TypeXRCRecv }

// reset forgets all work and the connection, without completions.
func (s *responder) reset() {
	if s.early != nil {
		s.early.clear()
		s.early = nil
	}
	s.rq.Clear()
	if s.typ == TypeXRCRecv {
		s.xrcd.Purge(s.num)
		s.srq = nil
	}
	s.receiveState = receiveState{}
	s.noCredits.Store(false)
}

type msgKind uint8

const (
	msgNone msgKind = iota
	msgSend
	msgWrite
)

// handleRequest takes a request packet.
func (s *responder) handleRequest(now Time, p *wire.Packet) {
	switch d := p.BTH.PSN.Diff(s.psn); {
	case d < 0:
		s.handleDuplicate(p)
		return
	case d > 0:
		if !s.keepEarly(now, p, uint32(d)) {
			s.handleGap(p)
		}
		return
	}
	for {
		reason, nak := s.execute(now, p)
		switch {
		case nak == 0:
		case nak.IsRNRNAK():
			s.note(p, reason)
			s.count.Inc(counter.SendRNR)
			s.gap, s.refused = true, true // packets behind the refused one tell of no loss
			s.responses.nak(s.psn, nak)
			return
		default:
			s.refuse(now, p, reason, nak)
			return
		}
		if s.State() == StateErr {
			return
		}
		if p = s.nextEarly(now); p == nil {
			return
		}
	}
}

// refuse sends a NAK that ends the QP (IBA 9.9.3). A receive that the message
// had taken reports why, all others are flushed; where there is none to report
// it, an event does.
func (s *responder) refuse(now Time, p *wire.Packet, reason Reason, nak wire.Syndrome) {
	s.note(p, reason)
	s.count.Inc(counter.SentFatalNAK)
	s.responses.nak(s.psn, nak)
	status, event := StatusRemInvReqErr, EventQPReqErr
	if nak == wire.NAKRemoteAccessError {
		status, event = StatusLocAccessErr, EventQPAccessErr
	}
	switch {
	case s.recvTaken:
		s.completeRecv(&Completion{Status: status, Time: now}, true)
	case reason == reasonLocal || reason == reasonFit:
		// The receive that was too small, or not the QP's, has completed with the error
		// already.
	default:
		s.raise(event)
	}
	s.enterError()
}

// handleGap asks once for the packet that is missing.
func (s *responder) handleGap(p *wire.Packet) {
	if s.gap {
		s.drop(p, reasonAfterGap)
		return
	}
	s.drop(p, reasonGap)
	s.count.Inc(counter.SentSeqNAK)
	s.gap, s.refused = true, false
	s.responses.nak(s.psn, wire.NAKPSNSequenceError)
}

// execute checks and executes a request with the expected PSN. It returns the
// syndrome to refuse it with, 0 when it was executed.
func (s *responder) execute(now Time, p *wire.Packet) (Reason, wire.Syndrome) {
	c := p.Spec.Class
	if !s.inSequence(c) {
		return reasonSequence, wire.NAKInvalidRequest
	}
	if s.typ == TypeXRCRecv && !s.findSRQ(p) {
		return reasonSRQ, wire.NAKInvalidRequest
	}
	switch {
	case c&wire.ClassSend != 0:
		return s.executeSend(now, p)
	case c&wire.ClassWrite != 0:
		return s.executeWrite(now, p)
	case c&wire.ClassRead != 0:
		return s.executeRead(p)
	case c&wire.ClassAtomic != 0:
		return s.executeAtomic(p)
	case c&wire.ClassFlush != 0:
		return s.executeFlush(p)
	case c&wire.ClassAtomicWrite != 0:
		return s.executeAtomicWrite(p)
	}
	return reasonRights, wire.NAKInvalidRequest
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

// peerAccess returns on whose behalf a request accesses memory; since is the epoch at
// which its message began.
func (s *responder) peerAccess(since mem.Epoch) mem.Accessor {
	by := mem.Accessor{Domain: s.domain, Party: &s.party, Since: since}
	if s.typ == TypeXRCRecv {
		by.Domain = s.srq.Domain()
	}
	return by
}

// recvAccess returns on whose behalf the receive in hand is written. A shared receive
// queue has a protection domain of its own (IBA 10.2.9.1).
func (s *responder) recvAccess() mem.Accessor {
	by := mem.Accessor{Domain: s.domain, Since: s.since}
	if s.srq != nil {
		by.Domain = s.srq.Domain()
	}
	return by
}

// takeReceive makes sure that a receive is in hand.
func (s *responder) takeReceive() bool {
	if s.recvTaken {
		return true
	}
	if s.srq != nil {
		room := s.sges
		if s.typ == TypeXRCRecv && len(room) < s.srq.MaxSGE() {
			s.sges = make([]SGE, s.srq.MaxSGE())
			room = s.sges
		}
		w, ok := s.srq.Take(room)
		if !ok {
			return false
		}
		s.recv = w
	} else {
		if s.rq.Empty() {
			return false
		}
		s.recv = *s.rq.At(s.rq.Head())
	}
	s.recvTaken = true
	return true
}

// recvList returns the pieces of the receive that was taken.
func (s *responder) recvList() []SGE {
	n := int(s.recv.NumSGE)
	if s.srq != nil {
		return s.sges[:n]
	}
	return s.rq.SGList(s.rq.Head(), n)
}

// completeRecv completes the receive in hand. Its slot is free before the completion is
// added.
func (s *responder) completeRecv(wc *Completion, solicited bool) {
	s.deliverRecv(wc, solicited, nil)
}

// deliverRecv is completeRecv with the inline payload of the completion, nil for
// none.
func (s *responder) deliverRecv(wc *Completion, solicited bool, in *queue.InlinePayload) {
	wc.WRID = s.recv.WRID
	if s.srq == nil {
		s.rq.Pop()
	}
	s.recvTaken = false
	s.deliver(s.receiveCQ(), wc, solicited, in)
}

// receiveCQ is where the receive in hand completes.
func (s *responder) receiveCQ() *CQ {
	if s.typ == TypeXRCRecv {
		return s.srq.CQ()
	}
	return s.recvCQ
}

// accept moves on to the next PSN and acknowledges when asked to.
func (s *responder) accept(p *wire.Packet) {
	psn := s.psn
	s.psn, s.gap, s.missed = psn.Add(1), false, 0
	if p.BTH.AckReq && s.typ != TypeUC {
		if s.responses.ack(psn, s.credits(), s.msn) {
			s.count.Inc(counter.AckDeferred)
		}
	}
}

// finishMessage ends a SEND or a WRITE; wc is nil when it consumes no receive, and in
// when its completion carries no payload.
func (s *responder) finishMessage(p *wire.Packet, wc *Completion, in *queue.InlinePayload) {
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
	s.deliverRecv(wc, p.BTH.SE, in)
	s.count.Inc(counter.RDMARecvs)
}

// handleDuplicate responds to a request that was executed before (IBA 9.7.5.1.4).
func (s *responder) handleDuplicate(p *wire.Packet) {
	s.count.Inc(counter.DuplicateRequest)
	if p.Spec.Class&(wire.ClassSend|wire.ClassWrite) != 0 {
		if p.BTH.AckReq && s.tellsAgain() {
			s.responses.nak(s.psn, wire.NAKPSNSequenceError)
			return
		}
		s.responses.ack(s.psn.Sub(1), s.credits(), s.msn)
		return
	}
	if !s.replay(p) {
		s.drop(p, reasonReplay)
	}
}
