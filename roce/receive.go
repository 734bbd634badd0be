package roce

import (
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// This file is about the receive that a message takes, and on whose behalf memory is
// accessed for a peer.

// takeReceive makes sure that a receive is in hand.
func (s *responder) takeReceive() bool {
	if s.recvTaken {
		return true
	}
	if s.srq != nil {
		s.makeRoom(s.srq)
		w, ok := s.srq.Take(*s.sges)
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

// makeRoom has room for the pieces of a receive of a shared queue. The SRQ of an XRC_RECV is
// that of each message.
func (s *responder) makeRoom(from *SRQ) {
	if s.sges == nil || len(*s.sges) < from.MaxSGE() {
		sges := make([]SGE, from.MaxSGE())
		s.sges = &sges
	}
}

// recvList returns the pieces of the receive that was taken.
func (s *responder) recvList() []SGE {
	n := int(s.recv.NumSGE)
	if s.srq != nil {
		return (*s.sges)[:n]
	}
	return s.rq.SGList(s.rq.Head(), n)
}

// completeRecv completes the receive in hand. Its slot is free before the completion is
// added.
func (s *responder) completeRecv(wc *Completion, solicited bool) {
	s.deliverRecv(wc, solicited, nil)
}

// failRecv ends the receive in hand without success.
func (s *responder) failRecv(now Time, status Status) {
	s.completeRecv(&Completion{Status: status, Opcode: WCRecv, Time: now}, true)
}

// deliverRecv is completeRecv with the inline payload of the completion, nil for
// none.
func (s *responder) deliverRecv(wc *Completion, solicited bool, in *queue.InlinePayload) {
	wc.WRID = s.recv.WRID
	if s.srq == nil {
		s.rq.Pop()
	}
	s.recvTaken = false
	if !s.deliver(s.receiveCQ(), wc, solicited, in) && s.typ == TypeXRCRecv {
		s.srq.Fail() // the CQ is that of the SRQ, which serves others as well
	}
}

// noReceive is how a message is refused for which there is no receive.
func (s *responder) noReceive() (Reason, wire.Syndrome) {
	if s.srq != nil && s.srq.Failed() {
		return reasonSRQError, wire.NAKRemoteOperationalError
	}
	return reasonResources, wire.RNRSyndrome(s.attr.MinRNRTimer)
}

// receiveCQ is where the receive in hand completes.
func (s *responder) receiveCQ() *CQ {
	if s.typ == TypeXRCRecv {
		return s.srq.CQ()
	}
	return s.recvCQ
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

// peerAccess returns on whose behalf a request accesses memory; since is the epoch at
// which its message began.
func (s *responder) peerAccess(since mem.Epoch) mem.Accessor {
	by := mem.Accessor{Domain: s.domain, Party: &s.party, Since: since}
	if s.typ == TypeXRCRecv {
		by.Domain = s.srq.Domain()
	}
	return by
}
