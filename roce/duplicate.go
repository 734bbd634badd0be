package roce

import (
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// This file answers requests that were executed before.

// handleDuplicate responds to a request that was executed before (IBA 9.7.5.1.4).
func (s *responder) handleDuplicate(p *wire.Packet) {
	s.count.Inc(counter.DuplicateRequest)
	s.outcome.judge(VerdictDuplicate, reasonAdmitted)
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

// replay queues the response to a request with an old PSN again, if it is remembered. A
// READ may ask for any part of the remembered one.
func (s *responder) replay(p *wire.Packet) bool {
	psn := p.BTH.PSN
	// The newest first: PSNs come again after 2^24 packets.
	for age := range s.resources {
		i := s.newestIndex(age)
		res := &s.resources[i]
		if res.kind == resourceNone ||
			!psn.InWindow(res.first, uint32(res.last.Sub(uint32(res.first)))+1) {
			continue
		}
		if res.kind != kindOf(p.Spec) || (res.kind == resourceRead && !s.replayRead(p, res)) {
			return false
		}
		if !res.queued {
			res.queued = true
			s.responses.addReplay(i, res.first, s.msn)
		}
		if res.kind == resourceRead {
			reth := p.RETH()
			res.respond(psn, uint32(reth.VA-res.va), reth.DMALen, s.pmtu())
		}
		return true
	}
	return false
}

// kindOf is the kind of resource that remembers a request.
func kindOf(spec *wire.OpcodeSpec) resourceKind {
	switch {
	case spec.Is(wire.ClassRead):
		return resourceRead
	case spec.Is(wire.ClassAtomic):
		return resourceAtomic
	case spec.Class&(wire.ClassFlush|wire.ClassAtomicWrite) != 0:
		return resourceDone
	}
	return resourceNone
}
