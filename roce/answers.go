package roce

import "xroce/roce/wire"

// An answer is what the responder owes the peer: one acknowledge packet, or what
// answers a READ, an atomic or their like.
type answer struct {
	psn      wire.PSN // acknowledge: its PSN, else the request's first PSN
	msn      uint32
	stored   bool          // the answer is in a resource
	resource uint8         // its index, below MaxRdAtomic
	syndrome wire.Syndrome // acknowledge
}

// An answerQueue keeps answers in the order in which they must leave. Between two
// of those that are stored at most one acknowledge waits, because a later one
// covers those before it; so the queue is bounded by the resources.
type answerQueue struct {
	ring []answer
	head int32
	n    int32
}

// init makes room for the answers in so many resources.
func (f *answerQueue) init(resources int) {
	// Every resource is in the queue at most once, with one acknowledge before
	// each and one behind the last.
	*f = answerQueue{ring: make([]answer, 2*resources+1)}
}

func (f *answerQueue) clear() { f.head, f.n = 0, 0 }

func (f *answerQueue) front() *answer { return &f.ring[f.head] }

// patient reports whether the answer in front is a mere ACK.
func (f *answerQueue) patient() bool {
	return f.n > 0 && !f.front().stored && f.front().syndrome.IsACK()
}

func (f *answerQueue) pop() {
	f.head = (f.head + 1) % int32(len(f.ring))
	f.n--
}

func (f *answerQueue) push(a answer) {
	*f.at(int(f.n)) = a
	f.n++
}

// answer queues the answer in a resource.
func (f *answerQueue) answer(resource int, psn wire.PSN, msn uint32) {
	f.push(answer{stored: true, resource: uint8(resource), psn: psn, msn: msn})
}

// replay queues the answer to an old request before everything that answers
// later PSNs: a peer that misses this one can use nothing behind it.
func (f *answerQueue) replay(resource int, psn wire.PSN, msn uint32) {
	f.answer(resource, psn, msn)
	for i := int(f.n) - 1; i > 0; i-- {
		a, b := f.at(i-1), f.at(i)
		if a.psn.Before(psn) {
			return
		}
		*a, *b = *b, *a
	}
}

// cancel takes the answer in a resource out. Two acknowledges that then meet are
// one: the later covers the earlier.
func (f *answerQueue) cancel(resource int) {
	i := 0
	for ; i < int(f.n); i++ {
		if a := f.at(i); a.stored && int(a.resource) == resource {
			break
		}
	}
	f.remove(i)
	if i > 0 && i < int(f.n) && !f.at(i-1).stored && !f.at(i).stored {
		f.remove(i - 1)
	}
}

// remove takes out the answer i places behind the front.
func (f *answerQueue) remove(i int) {
	for ; i < int(f.n)-1; i++ {
		*f.at(i) = *f.at(i + 1)
	}
	f.n--
}

// at returns the answer i places behind the front.
func (f *answerQueue) at(i int) *answer { return &f.ring[(int(f.head)+i)%len(f.ring)] }

// ack queues a positive acknowledge of psn and all before it. It reports
// whether one that waited was covered by it.
func (f *answerQueue) ack(psn wire.PSN, s wire.Syndrome, msn uint32) bool {
	return f.acknowledge(answer{psn: psn, syndrome: s, msn: msn})
}

// nak queues a negative acknowledge, which covers all PSNs before its own.
func (f *answerQueue) nak(psn wire.PSN, s wire.Syndrome) {
	f.acknowledge(answer{psn: psn, syndrome: s})
}

func (f *answerQueue) acknowledge(a answer) (covered bool) {
	if f.n > 0 {
		tail := f.at(int(f.n) - 1)
		if !tail.stored {
			// A waiting NAK covers all PSNs before its own, and more: it is
			// not to be lost to the acknowledge of a duplicate.
			// What was refused for want of a receive is not missing.
			if tail.syndrome.IsACK() || a.psn.After(tail.psn) || (a.psn == tail.psn &&
				!(tail.syndrome.IsRNRNAK() && a.syndrome == wire.NAKPSNSequenceError)) {
				*tail = a
			}
			return true
		}
	}
	f.push(a)
	return false
}

// nextResponse writes the next packet that the responder owes.
func (s *responder) nextResponse(now Time, frame []byte) int {
	f := &s.fifo
	if f.n == 0 {
		if s.starved.Load() {
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

// putAck writes an acknowledge packet, positive or negative.
func (s *responder) putAck(psn wire.PSN, syndrome wire.Syndrome, msn uint32, frame []byte) int {
	b := frame[s.path.Len():]
	spec := s.putBTH(b, wire.BTH{Opcode: wire.RCAck, PSN: psn}, 0)
	wire.AETH{Syndrome: syndrome, MSN: msn}.Put(b[spec.Offsets[wire.HeaderAETH]:])
	return s.seal(&s.path, frame, wire.BTHLen+int(spec.HeaderLen), 0)
}

// putStored writes the next packet of the answer in a resource.
func (s *responder) putStored(now Time, a *answer, frame []byte) int {
	res := &s.resources[a.resource]
	if res.kind == resourceRead {
		if res.until > now {
			s.pageWait = true
			return 0
		}
		return s.putReadResponse(now, a, res, frame)
	}
	b := frame[s.path.Len():]
	op := wire.RCReadRespOnly
	if res.kind == resourceAtomic {
		op = wire.RCAtomicAck
	}
	spec := s.putBTH(b, wire.BTH{Opcode: op, PSN: res.first}, 0)
	wire.AETH{Syndrome: s.credits(), MSN: a.msn}.Put(b[spec.Offsets[wire.HeaderAETH]:])
	if res.kind == resourceAtomic {
		wire.AtomicAckETH{OrigData: res.value}.Put(b[spec.Offsets[wire.HeaderAtomicAckETH]:])
	}
	res.queued, res.answered = false, true
	s.fifo.pop()
	return s.seal(&s.path, frame, wire.BTHLen+int(spec.HeaderLen), 0)
}
