package roce

import (
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A resource remembers a request whose response is more than an acknowledge, so that
// the response can be repeated, and how much of it has been sent. READ
// reads the memory again; an atomic, a FLUSH and an ATOMIC WRITE are executed
// once and only their response is repeated (IBA 9.7.5.1.4).
type resource struct {
	first, last wire.PSN
	kind        resourceKind
	queued      bool  // a response is in the queue
	responded   bool  // one left, to its end
	missed      uint8 // READ: how often in a row its pages were absent

	value uint64       // atomic: the old value
	sync  *mem.SyncJob // FLUSH: what its answer waits for, or nil

	// READ:
	by         mem.Accessor
	va         uint64
	rkey       uint32
	length     uint32
	start, cur wire.PSN // the first response under way, the next one to send
	stop       wire.PSN // its last response
	end        uint32   // the byte behind it, counted from va
	until      Time     // for how long it waits for a page, 0 when it does not
}

type resourceKind uint8

const (
	resourceNone   resourceKind = iota
	resourceRead                // READ
	resourceAtomic              // FETCH_ADD, CMP_SWP
	resourceDone                // FLUSH, ATOMIC WRITE: a READ response without data
)

// respond prepares a response of n bytes from psn on.
func (r *resource) respond(psn wire.PSN, off, n, pmtu uint32) {
	r.queued, r.start, r.cur = true, psn, psn
	r.stop, r.end = psn.Add(responsePackets(n, pmtu)-1), off+n
}

// responsePackets is the number of response packets of a READ of n bytes.
func responsePackets(n, pmtu uint32) uint32 { return max(1, (n+pmtu-1)/pmtu) }

// resourceFree reports whether the next resource can be used. It cannot while its
// first response has not left: the peer has more outstanding than it was told it may.
// One that is to be repeated is given up: the peer has it, else it would not send more.
func (s *responder) resourceFree() bool {
	if len(s.resources) == 0 {
		s.remember(int(s.depth)) // the first: most connections never need one
	}
	res := &s.resources[s.nextResource]
	if res.queued && res.responded {
		s.responses.cancel(int(s.nextResource))
		res.queued = false
	}
	return !res.queued
}

// addResource remembers a request that takes some PSNs, queues its response and moves on.
func (s *responder) addResource(r resource, packets uint32) *resource {
	res := &s.resources[s.nextResource]
	*res = r
	res.first, res.last, res.queued = s.psn, s.psn.Add(packets-1), true
	s.msn = (s.msn + 1) & 0xffffff
	s.responses.addStored(int(s.nextResource), s.psn, s.msn)
	s.nextResource = uint8((int(s.nextResource) + 1) % len(s.resources))
	s.psn, s.gap, s.missed = s.psn.Add(packets), false, 0
	return res
}

// mayAddResource makes the checks of requests that have a resource: the QP's rights, and
// room.
func (s *responder) mayAddResource(need mem.Access) (Reason, wire.Syndrome) {
	switch {
	case s.attr.Access&need != need || s.depth == 0:
		return reasonRights, wire.NAKInvalidRequest
	case !s.resourceFree():
		return reasonResources, wire.NAKInvalidRequest
	}
	return reasonAdmitted, 0
}

// refusal returns the reason and the syndrome for a fault of memory.
func (s *responder) refusal(fault mem.Fault) (Reason, wire.Syndrome) {
	switch fault {
	case mem.FaultPage:
		return s.absent()
	case mem.FaultMisaligned:
		return reasonAlignment, wire.NAKInvalidRequest
	case mem.FaultSync:
		return reasonSync, wire.NAKRemoteOperationalError
	}
	return reasonRKey, wire.NAKRemoteAccessError
}

// canRemember reports whether n resources are enough for every request whose
// response is queued: only the n newest are kept.
func (s *responder) canRemember(n int) bool {
	for age := n; age < len(s.resources); age++ {
		if s.newest(age).queued {
			return false
		}
	}
	return true
}

// newest returns a resource by age, the last one first.
func (s *responder) newest(age int) *resource {
	return &s.resources[s.newestIndex(age)]
}

func (s *responder) newestIndex(age int) int {
	return (int(s.nextResource) - 1 - age + 2*len(s.resources)) % len(s.resources)
}

// grant sets how many requests may be remembered. Their memory comes with the first.
func (s *responder) grant(n uint8) {
	s.depth = n
	switch {
	case len(s.resources) > 0:
		s.remember(int(n))
	case s.responses.ring == nil:
		s.remember(0)
	}
}

// remember changes the number of resources to n, and keeps what fits.
func (s *responder) remember(n int) {
	kept := min(n, len(s.resources))
	resources, moved := make([]resource, n), make([]uint8, len(s.resources))
	for age := range kept {
		resources[kept-1-age] = *s.newest(age)
		moved[s.newestIndex(age)] = uint8(kept - 1 - age)
	}
	var responses responseQueue
	responses.init(n)
	for ; s.responses.n > 0; s.responses.pop() {
		a := *s.responses.front()
		if a.stored {
			a.resource = moved[a.resource]
		}
		responses.push(a)
	}
	s.resources, s.responses, s.nextResource = resources, responses, 0
	if kept < n {
		s.nextResource = uint8(kept)
	}
}
