package roce

import (
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// Memory may have pages that are absent (on-demand paging, mem.Pager). This
// package never blocks for one: an access that finds a page absent has requested it by
// that, does nothing else, and is tried again after a time.
//
//	memory of                        what happens meanwhile
//	a work request, its result       the send queue is paused
//	a request that is refused        RNR NAK: the peer sends it again
//	a READ under way                 its response is paused, and those behind it
//	a datagram, UC, a raw frame      the packet is dropped
//
// Memory that is not there at all is refused like any other that may not be accessed.

// How long the wait for a page is: at first about as long as it takes to find one in
// memory, then twice as long each time.
const (
	firstStall = 20 * Microsecond
	lastStall  = Millisecond
	// As codes of the RNR timer, of which every second doubles.
	firstPageRNR = 7  // 120 us
	lastPageRNR  = 21 // 15.36 ms
	// mostMisses is where counting ends: the longest of all waits is reached then.
	mostMisses = 7
)

// absent is how a request is refused for want of a page. Nothing of it was done, or
// what was will be done again in the same way. The peer is to try again soon, and
// then ever later.
func (s *responder) absent() (Reason, wire.Syndrome) {
	code := min(firstPageRNR+2*s.missed, lastPageRNR)
	if s.typ != TypeUC {
		s.missed = min(s.missed+1, mostMisses)
		s.count.Inc(counter.PageRNR)
	}
	return reasonPage, wire.RNRSyndrome(code)
}

// refusePage is absent for a SEND, n bytes of which were to go to the receive in hand.
// Unless it is the last packet, more of that will be written.
func (s *responder) refusePage(list []SGE, n uint32, p *wire.Packet) (Reason, wire.Syndrome) {
	if !p.Spec.Is(wire.ClassLast) {
		n = s.recv.Length - s.placed
	}
	s.wantPages(s.recvAccess(), list, s.placed, n, mem.LocalWrite)
	return s.absent()
}

// awaitPage pauses the response to a READ, from off bytes into it, until its pages
// may be there.
func (s *responder) awaitPage(now Time, res *resource, off uint32) {
	s.keys().Ready(res.by, res.rkey, res.va+uint64(off), int(res.end-off), mem.RemoteRead)
	s.count.Inc(counter.PageStalls)
	res.until, s.pageWait = now+stallTime(res.missed), true
	res.missed = min(res.missed+1, mostMisses)
}

// waitsUntil is until when the response in front waits for a page, 0 when it does not.
func (s *responder) waitsUntil() Time {
	if s.responses.n == 0 || !s.responses.front().stored {
		return 0
	}
	return s.resources[s.responses.front().resource].until
}
