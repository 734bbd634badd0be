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

// stallTime is how long to wait when pages were absent so many times before.
func stallTime(before uint8) Time { return min(firstStall<<before, lastStall) }

// stall lets the send queue wait for a page.
func (r *requester) stall(now Time) {
	if r.stalled {
		return
	}
	r.count.Inc(counter.PageStalls)
	r.stalled, r.rnrAt = true, now+stallTime(r.stalls)
	r.stalls = min(r.stalls+1, mostMisses)
	if r.psn == r.una {
		r.ackAt = 0 // nothing is under way that the peer could acknowledge
	}
}

// missResult takes the fault that keeps the response p from being stored, off bytes
// into its work request. For want of a page the response is dropped and requested again
// after a wait, which costs no retry: the peer did what it should.
func (r *requester) missResult(now Time, w *sendWQE, p *wire.Packet, off uint32, fault mem.Fault) {
	if fault != mem.FaultPage {
		r.count.Inc(counter.SendErr)
		r.fail(now, StatusLocProtErr)
		return
	}
	list := r.sq.SGList(r.sq.Head(), int(w.numSGE))
	r.wantPages(r.localAccess(w), list, off, max(w.length, 8)-off, mem.LocalWrite)
	r.drop(p, reasonPage)
	if r.rnrWait {
		return // it is requested again after that wait
	}
	r.stall(now)
	// Packets of the response that come meanwhile do not tell of a loss.
	r.goBack(r.una)
	r.retried, r.resent, r.ackAt = true, true, 0
	r.recovery.resultDropped()
}

// wantPages asks for the pages of n bytes of pieces, from off on. One that is absent
// was found before: those behind it will be wanted next.
func (t *transport) wantPages(by mem.Accessor, list []SGE, off, n uint32, need mem.Access) {
	for i := 0; n > 0 && i < len(list); i++ {
		s := &list[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		m := min(n, s.Length-off)
		t.keys.Ready(by, s.LKey, s.Addr+uint64(off), int(m), need)
		n, off = n-m, 0
	}
}

// ready reports whether a result can be written to pieces, all of which are checked. All
// pages that are absent have been asked for then.
func (t *transport) ready(by mem.Accessor, list []SGE) mem.Fault {
	result := mem.OK
	for i := range list {
		s := &list[i]
		if s.Length == 0 {
			continue
		}
		switch f := t.keys.Ready(by, s.LKey, s.Addr, int(s.Length), mem.LocalWrite); f {
		case mem.OK:
		case mem.FaultPage:
			result = f
		default:
			return f
		}
	}
	return result
}

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
	s.keys.Ready(res.by, res.rkey, res.va+uint64(off), int(res.end-off), mem.RemoteRead)
	s.count.Inc(counter.PageStalls)
	res.until, s.pageWait = now+stallTime(s.missed), true
	s.missed = min(s.missed+1, mostMisses)
}

// waitsUntil is until when the response in front waits for a page, 0 when it does not.
func (s *responder) waitsUntil() Time {
	if s.responses.n == 0 || !s.responses.front().stored {
		return 0
	}
	return s.resources[s.responses.front().resource].until
}
