package roce

import (
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// This file takes request packets and hands each to its operation.

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
			s.note(p, VerdictRefused, reason)
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
		s.outcome.settled = true
	}
}

// refuse sends a NAK that ends the QP (IBA 9.9.3). A receive that the message
// had taken reports why, all others are flushed; where there is none to report
// it, an event does.
func (s *responder) refuse(now Time, p *wire.Packet, reason Reason, nak wire.Syndrome) {
	s.note(p, VerdictRefused, reason)
	s.count.Inc(counter.SentFatalNAK)
	s.responses.nak(s.psn, nak)
	s.enterError() // before anybody is told
	status, event := StatusRemInvReqErr, EventQPReqErr
	if nak == wire.NAKRemoteAccessError {
		status, event = StatusLocAccessErr, EventQPAccessErr
		s.badKey = true
	}
	switch {
	case reason == reasonSRQError:
		s.raise(EventQPFatal) // it is not the peer's mistake
	case s.recvTaken:
		s.failRecv(now, status)
	case reason == reasonLocal || reason == reasonFit:
		// The receive that was too small, or not the QP's, has completed with the error
		// already.
	default:
		s.raise(event)
	}
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
	if s.syncing {
		return reasonFlush, wire.RNRSyndrome(flushRNR)
	}
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
