package roce

import "xroce/roce/wire"

// This file writes the responder's packets, in the order of its queue.

// nextResponse writes the next packet of the responder.
func (s *responder) nextResponse(now Time, frame []byte) int {
	f := &s.responses
	if f.n == 0 {
		if s.noCredits.Load() {
			return s.grantCredit(frame)
		}
		return 0
	}
	a := f.front()
	if a.stored {
		return s.putStored(now, a, frame)
	}
	msn, psn, syndrome := a.msn, a.psn, a.syndrome
	if syndrome.IsNAK() || syndrome.IsRNRNAK() {
		msn = s.msn
	}
	f.pop()
	if s.early != nil && syndrome == wire.NAKPSNSequenceError {
		return s.putGapNAK(frame)
	}
	return s.putAck(psn, syndrome, msn, frame)
}

// putStored writes the next packet of the response in a resource.
func (s *responder) putStored(now Time, a *response, frame []byte) int {
	res := &s.resources[a.resource]
	if res.kind == resourceRead {
		if res.until > now {
			s.pageWait = true
			return 0
		}
		return s.putReadResponse(now, a, res, frame)
	}
	if res.sync != nil {
		return 0
	}
	b := frame[s.path.Len():]
	op := wire.RCReadRespOnly
	if res.kind == resourceAtomic {
		op = wire.RCAtomicAck
	}
	spec := s.putBTH(b, &wire.BTH{Opcode: op, PSN: res.first}, 0)
	wire.AETH{Syndrome: s.credits(), MSN: a.msn}.Put(b[spec.Offsets[wire.HeaderAETH]:])
	if res.kind == resourceAtomic {
		wire.AtomicAckETH{OrigData: res.value}.Put(b[spec.Offsets[wire.HeaderAtomicAckETH]:])
	}
	res.queued, res.responded = false, true
	s.responses.pop()
	return s.seal(&s.path, frame, wire.BTHLen+int(spec.HeaderLen), 0)
}
