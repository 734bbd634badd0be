package roce

import (
	"xroce/roce/counter"
	"xroce/roce/recovery"
	"xroce/roce/wire"
)

// This file is about responses with data, of READs, atomics and their like, that come
// before those that are awaited, at a requester with selective repeat.

// handleData takes a response, and then those that waited for it.
func (x *selectiveRepeat) handleData(now Time, p *wire.Packet) {
	if x.keep(now, p) {
		return
	}
	for p != nil {
		x.r.takeData(now, p)
		if x.r.State() == StateErr {
			return
		}
		p = x.next(now)
		x.r.outcome.settled = true
	}
}

// keep keeps a response with data behind a gap. It reports false when it is the awaited
// one.
func (x *selectiveRepeat) keep(now Time, p *wire.Packet) bool {
	r, psn := x.r, p.BTH.PSN
	if r.reach(now, psn) {
		return false
	}
	if r.State() == StateErr {
		return true
	}
	x.probe.Acknowledged(now, psn.Add(1), x.board.Sacked())
	x.data.Advance(r.una)
	if x.board.Requested(psn) && !x.data.Has(psn) {
		x.lostInResponse(now, psn)
	}
	switch {
	case x.data.Has(psn):
	case x.data.Put(p):
		r.count.Inc(counter.HeldEarly)
		r.outcome.judge(VerdictHeld, reasonAdmitted)
	default:
		r.drop(p, reasonResponse)
	}
	x.dataMissing(now, psn)
	return true
}

// lostInResponse follows data that was requested again and comes before that from una on:
// if both belong to one READ, una was lost on the way, and is requested once more. That
// cuts the rest of the response short. Data that comes too soon is of the response before.
func (x *selectiveRepeat) lostInResponse(now Time, psn wire.PSN) {
	r := x.r
	if x.premature(now) {
		return
	}
	last := r.oldest().last
	if x.board.Requested(r.una) && r.ahead(psn) <= r.ahead(last) {
		x.board.CancelRequests(last)
	}
}

// dataMissing takes an acknowledge of everything before a PSN while data from una on is
// missing. The data is lost, unless it may have been overtaken on its way.
func (x *selectiveRepeat) dataMissing(now Time, psn wire.PSN) {
	if x.board.Overtaken(psn) && x.gap.Lost(now, x.data.Len()) {
		x.repeatData(now)
	}
}

// repeatData requests the data that is missing from una on.
func (x *selectiveRepeat) repeatData(now Time) {
	r := x.r
	r.count.Inc(counter.ImpliedNAK)
	r.retried = true
	if x.repeats(now) {
		x.board.RepeatData(r.sentTop)
		x.beganRepetition()
		r.sendFrom(now, r.una)
	}
}

// next returns the awaited response with data, nil when it has not come. What waits
// behind it then makes the next gap. When no gap is left, the requests that the peer
// reported missing meanwhile are sent again.
func (x *selectiveRepeat) next(now Time) *wire.Packet {
	r := x.r
	x.data.Advance(r.una)
	x.gap.Close()
	next := x.board.Executed()
	if x.data.Len() > 0 {
		next = x.data.First(r.una, r.una.Add(recovery.Span))
	}
	switch {
	case next != r.una && !r.reach(now, next):
		if r.State() != StateErr && !x.board.Requested(r.una) && x.gap.Lost(now, x.data.Len()) {
			x.repeatData(now)
		}
		return nil
	case x.data.Len() > 0:
		return x.data.Take(next)
	case x.board.Reported().After(r.una) && !r.rnrWait && !r.retried:
		x.repeatUpTo(now, x.board.Reported())
	}
	return nil
}
