package roce

import (
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// This file is about answers with data, of READs, atomics and their like, that
// come before those that are awaited: at the requester of a QP with extensions.

// holdResponse keeps an answer with data behind a gap. It reports false when it is
// the awaited one.
func (q *QP) holdResponse(now Time, p *wire.Packet) bool {
	x, psn := q.sel, p.BTH.PSN
	if q.reach(now, psn) {
		return false
	}
	if q.State() == StateErr {
		return true
	}
	x.measure(now, psn.Add(1))
	x.early.advance(x.pool, q.req.una)
	if x.asked.has(psn) && !x.early.has(psn) {
		q.lostInAnswer(psn)
	}
	switch {
	case x.early.has(psn):
	case x.early.put(x.pool, p):
		q.count.Inc(counter.HeldEarly)
	default:
		q.drop(p, stepResponse)
	}
	q.overtaken(now, psn)
	return true
}

// askedFor notes that data was asked for again, up to what is here already.
func (x *selective) askedFor(from, to wire.PSN) {
	to = x.early.hole(from, to)
	for ; from != to && uint32(from.Sub(uint32(x.noted))) < holdSpan; from = from.Add(1) {
		x.asked.add(from)
	}
}

// lostInAnswer follows data that was asked for again and comes before that from una
// on: if both belong to one READ, una was lost on the way, and is asked for once more.
// That cuts the rest of the answer short.
func (q *QP) lostInAnswer(psn wire.PSN) {
	x, r := q.sel, &q.req
	last := q.sq.At(q.sq.Head()).last
	if !x.asked.has(r.una) || r.ahead(psn) > r.ahead(last) {
		return
	}
	for p := r.una; r.ahead(p) <= r.ahead(last) && r.ahead(p) < holdSpan; p = p.Add(1) {
		x.asked.remove(p)
	}
}

// overtaken takes an answer to everything before a PSN while data from una on is
// missing. The data is lost, unless it may have been overtaken on its way. When
// it was asked for already, it is lost again if something that was sent after
// the question has come, or more than can have been on its way before.
func (q *QP) overtaken(now Time, psn wire.PSN) {
	x, r := q.sel, &q.req
	if psn.After(x.told) {
		x.told = psn
	}
	x.again++
	if x.asked.has(r.una) && !psn.After(x.mark) && x.again < holdSpan {
		return
	}
	if x.lost(&x.earlyGap, x.early.n, now) {
		q.askAgain(now)
	}
}

// askAgain asks for the data that is missing from una on.
func (q *QP) askAgain(now Time) {
	x, r := q.sel, &q.req
	q.count.Inc(counter.ImpliedNAK)
	top := r.una.Add(1)
	for _, p := range [...]wire.PSN{x.told, x.want} {
		if p.After(top) {
			top = p
		}
	}
	asked := x.asked
	asked.add(r.una)
	q.repeat(now, top)
	x.asked = asked
}

// nextHeldResponse returns the answer with data that is awaited now, nil when it
// has not come. What waits behind it then makes the next gap. When there is none
// any more it is time for what else the peer said meanwhile.
func (q *QP) nextHeldResponse(now Time) *wire.Packet {
	x, r := q.sel, &q.req
	x.early.advance(x.pool, r.una)
	x.earlyGap = 0
	next := x.told
	if x.early.n > 0 {
		next = x.early.hole(r.una, r.una.Add(holdSpan))
	}
	switch {
	case next != r.una && !q.reach(now, next):
		if q.State() != StateErr && !x.asked.has(r.una) &&
			x.lost(&x.earlyGap, x.early.n, now) {
			q.askAgain(now)
		}
		return nil
	case x.early.n > 0:
		return x.early.take(x.pool, next)
	case x.want.After(r.una) && !r.rnrWait && !r.retried:
		q.repeat(now, x.want)
	}
	return nil
}
