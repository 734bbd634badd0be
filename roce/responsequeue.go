package roce

import "xroce/roce/wire"

// A response is what the responder has to send: one acknowledge packet, or the response
// to a READ, an atomic or their like.
type response struct {
	psn      wire.PSN // acknowledge: its PSN, else the request's first PSN
	msn      uint32
	stored   bool          // the response is in a resource
	resource uint8         // its index, below MaxRdAtomic
	syndrome wire.Syndrome // acknowledge
}

// A responseQueue keeps responses in the order in which they must leave. Between two
// of those that are stored at most one acknowledge waits, because a later one
// covers those before it. So the queue is bounded by the resources.
type responseQueue struct {
	ring []response
	head int32
	n    int32
}

// init makes room for the responses in so many resources.
func (f *responseQueue) init(resources int) {
	// Every resource is in the queue at most once, with one acknowledge before
	// each and one behind the last.
	*f = responseQueue{ring: make([]response, 2*resources+1)}
}

func (f *responseQueue) clear() { f.head, f.n = 0, 0 }

func (f *responseQueue) front() *response { return &f.ring[f.head] }

// frontIsACK reports whether the response in front is a mere ACK.
func (f *responseQueue) frontIsACK() bool {
	return f.n > 0 && !f.front().stored && f.front().syndrome.IsACK()
}

// frontIsData reports whether the response in front is the data of a READ.
func (s *responder) frontIsData() bool {
	if s.responses.n == 0 {
		return false
	}
	a := s.responses.front()
	return a.stored && s.resources[a.resource].kind == resourceRead
}

func (f *responseQueue) pop() {
	f.head = (f.head + 1) % int32(len(f.ring))
	f.n--
}

func (f *responseQueue) push(a response) {
	*f.at(int(f.n)) = a
	f.n++
}

// addStored queues the response in a resource.
func (f *responseQueue) addStored(resource int, psn wire.PSN, msn uint32) {
	f.push(response{stored: true, resource: uint8(resource), psn: psn, msn: msn})
}

// addReplay queues the response to an old request before those to
// later PSNs: a peer that misses this one can use nothing behind it.
func (f *responseQueue) addReplay(resource int, psn wire.PSN, msn uint32) {
	f.addStored(resource, psn, msn)
	for i := int(f.n) - 1; i > 0; i-- {
		a, b := f.at(i-1), f.at(i)
		if a.psn.Before(psn) {
			return
		}
		*a, *b = *b, *a
	}
}

// cancel takes the response in a resource out. Two acknowledges that then meet are
// one: the later covers the earlier.
func (f *responseQueue) cancel(resource int) {
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

// truncate takes out the response in a resource, and all behind it.
func (f *responseQueue) truncate(resource int) {
	for f.n > 0 {
		f.n--
		if a := f.at(int(f.n)); a.stored && int(a.resource) == resource {
			return
		}
	}
}

// dropData drops responses that would still read memory, or wait for it, and what is behind them:
// whoever heard that the work has ended may use the memory for something else. When a NAK of ours
// is what ended it, the peer has a right to the answers before that (IBA 9.9.3).
func (s *responder) dropData() {
	f := &s.responses
	if f.n == 0 || f.at(int(f.n)-1).isFatal() {
		return
	}
	for i := range f.n {
		a := f.at(int(i))
		if !a.stored {
			continue
		}
		if res := &s.resources[a.resource]; res.kind == resourceRead || res.sync != nil {
			f.n = i
			return
		}
	}
}

// isFatal reports whether the response is a NAK that ends the connection.
func (a *response) isFatal() bool {
	return !a.stored && a.syndrome.IsNAK() && a.syndrome != wire.NAKPSNSequenceError
}

// remove takes out the response i places behind the front.
func (f *responseQueue) remove(i int) {
	for ; i < int(f.n)-1; i++ {
		*f.at(i) = *f.at(i + 1)
	}
	f.n--
}

// at returns the response i places behind the front.
func (f *responseQueue) at(i int) *response { return &f.ring[(int(f.head)+i)%len(f.ring)] }

// ack queues a positive acknowledge of psn and all before it. It reports
// whether one that waited was covered by it.
func (f *responseQueue) ack(psn wire.PSN, s wire.Syndrome, msn uint32) bool {
	return f.acknowledge(response{psn: psn, syndrome: s, msn: msn})
}

// nak queues a negative acknowledge, which covers all PSNs before its own.
func (f *responseQueue) nak(psn wire.PSN, s wire.Syndrome) {
	f.acknowledge(response{psn: psn, syndrome: s})
}

func (f *responseQueue) acknowledge(a response) (covered bool) {
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
