package roce

import (
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// How long a gap may stay open before it is called a loss, with ExtReorderWindow.
const (
	reorderPackets = 64                // packets that overtook
	reorderDelay   = 100 * Microsecond // since the first of them
)

// askAgain is how many more responses may come behind a gap that was asked for
// before it is asked for again.
const askAgain = 64

// selective is the state of the extensions of a QP: packets that came too early,
// in both directions, and what the peer keeps of ours.
//
// Nothing is executed early: packets wait in rings and pass through the same
// steps as all others when their turn comes, so that order, MSN, RNR and errors
// are those of the architecture.
type selective struct {
	ext   Extensions
	pool  *HoldPool
	late  holdRing // requests behind a gap, at the responder
	early holdRing // READ responses behind a gap, at the requester

	lateGap, earlyGap gap

	// What the peer keeps of our requests, by PSN, from una on.
	kept     [holdSpan / 64]uint64
	keptFrom wire.PSN

	// The last round of repetition: up to which PSN, and what was the first
	// PSN never sent when it began. A packet from mark on that arrived while
	// one from the round did not, says that the latter was lost again.
	redoing   bool
	top, mark wire.PSN
}

// A gap is one that may still close by itself.
type gap struct {
	packets int  // that overtook
	at      Time // when it becomes a loss, 0 for none
}

// extend switches extensions on.
func (q *QP) extend(e Extensions) {
	if q.sel != nil {
		q.sel.clear()
		q.sel = nil
	}
	if e != 0 {
		q.sel = &selective{ext: e, pool: q.holds}
		q.req.window = min(q.req.window, holdSpan)
	}
}

// clear gives back what is kept and forgets what is known of the peer.
func (x *selective) clear() {
	x.late.clear(x.pool)
	x.early.clear(x.pool)
	x.lateGap, x.earlyGap = gap{}, gap{}
	x.forget()
}

// forget takes the peer to keep nothing: so it is told all again.
func (x *selective) forget() {
	x.kept, x.redoing = [holdSpan / 64]uint64{}, false
	x.top, x.mark = 0, 0
}

// deadline is when a gap becomes a loss, 0 for never.
func (x *selective) deadline() Time { return sooner(x.lateGap.at, x.earlyGap.at) }

// understands tells whether a packet is one of the extensions.
func (q *QP) understands(p *wire.Packet) bool {
	return p.BTH.Opcode == wire.SelectiveAck && q.sel != nil
}

// lost notes one more packet behind a gap, and tells whether the gap is a loss.
func (x *selective) lost(g *gap, now Time) bool {
	g.packets++
	if x.ext&ExtReorderWindow == 0 || g.packets >= reorderPackets {
		*g = gap{}
		return true
	}
	if g.at == 0 {
		g.at = now + reorderDelay
	}
	return false
}

// selectiveDeadline treats gaps that stayed open too long as losses.
func (q *QP) selectiveDeadline(now Time) {
	x := q.sel
	if x.lateGap.at != 0 && now >= x.lateGap.at {
		x.lateGap = gap{}
		q.tellGap()
	}
	if x.earlyGap.at != 0 && now >= x.earlyGap.at {
		x.earlyGap = gap{}
		q.askHole(now)
	}
}

// holdRequest keeps a request that lies d PSNs ahead. It reports false when there
// is no room: then it is one behind a gap like any other.
func (q *QP) holdRequest(now Time, p *wire.Packet, d uint32) bool {
	x, s := q.sel, &q.rsp
	if d >= holdSpan {
		return false
	}
	x.late.advance(x.pool, s.psn)
	if x.late.has(p.BTH.PSN) {
		q.count.Inc(counter.DuplicateRequest)
	} else if !x.late.put(x.pool, p) {
		return false
	}
	q.count.Inc(counter.HeldEarly)
	switch {
	case s.gap:
		// It was told; who asks hears it again.
		if p.BTH.AckReq {
			s.fifo.nak(s.psn, wire.NAKPSNSequenceError)
		}
	case x.lost(&x.lateGap, now):
		q.tellGap()
	}
	return true
}

// tellGap reports the gap at the expected PSN.
func (q *QP) tellGap() {
	s := &q.rsp
	if s.gap || q.State() == StateErr {
		return
	}
	q.count.Inc(counter.OutOfSequence)
	q.count.Inc(counter.SentSeqNAK)
	s.gap = true
	s.fifo.nak(s.psn, wire.NAKPSNSequenceError)
}

// nextHeldRequest returns the request that is expected now, nil when it has not
// come. What waits behind it then makes the next gap.
func (q *QP) nextHeldRequest(now Time) *wire.Packet {
	x, s := q.sel, &q.rsp
	if x.late.n == 0 {
		x.lateGap = gap{}
		return nil
	}
	x.late.advance(x.pool, s.psn)
	if p := x.late.take(x.pool, s.psn); p != nil {
		return p
	}
	if x.lateGap = (gap{}); x.late.n > 0 && x.lost(&x.lateGap, now) {
		q.tellGap()
	}
	return nil
}

// putSelectiveAck tells what is expected and what is kept behind it. When the gap
// has closed meanwhile it is an ordinary acknowledge.
func (q *QP) putSelectiveAck(frame []byte) int {
	x, s := q.sel, &q.rsp
	if !s.gap {
		return q.putAck(s.psn.Sub(1), q.credits(), s.msn, frame)
	}
	if x.ext&ExtSelectiveRepeat == 0 {
		return q.putAck(s.psn, wire.NAKPSNSequenceError, s.msn, frame)
	}
	spec := wire.SelectiveAck.Spec()
	b := frame[q.path.Len():]
	wire.BTH{
		Opcode: wire.SelectiveAck, M: true, PKey: wire.DefaultPKey, DestQP: q.attr.DestQPN,
		PSN: s.psn,
	}.Put(b)
	wire.AETH{Syndrome: wire.NAKPSNSequenceError, MSN: s.msn}.
		Put(b[spec.Offsets[wire.HeaderAETH]:])
	headers := wire.BTHLen + int(spec.HeaderLen)
	x.late.advance(x.pool, s.psn)
	x.late.bits(s.psn, b[headers:][:wire.SelectiveBits/8])
	return q.seal(&q.path, frame, headers, wire.SelectiveBits/8)
}

// handleSelectiveAck takes what the peer expects and keeps.
func (q *QP) handleSelectiveAck(now Time, p *wire.Packet) {
	x, r, psn := q.sel, &q.req, p.BTH.PSN
	q.count.Inc(counter.PacketSeqErr)
	if !q.answered(now, psn) {
		return
	}
	top := x.keep(psn, p.Payload, r)
	if r.rnrWait {
		return
	}
	from := psn
	// In a round that is under way the PSN was sent again already, unless
	// something that was sent after it has come.
	if x.mark != x.top && r.ahead(psn) < r.ahead(x.top) && r.ahead(x.top) < 1<<23 &&
		r.ahead(top) < r.ahead(x.mark) {
		if r.ahead(top) <= r.ahead(x.top) {
			return
		}
		from = x.top
	}
	r.retried = true
	q.retryFrom(now, from)
	x.redo(top, r.sentTop)
}

// redo begins a round of repetition up to top.
func (x *selective) redo(top, mark wire.PSN) { x.redoing, x.top, x.mark = true, top, mark }

// keep notes what the peer keeps, and returns the highest PSN of it.
func (x *selective) keep(psn wire.PSN, bits []byte, r *requester) wire.PSN {
	top, sent := psn, r.ahead(r.sentTop)
	for i, b := range bits {
		for bit := range 8 {
			p := psn.Add(uint32(1 + 8*i + bit))
			if b&(1<<bit) == 0 {
				continue
			}
			if d := r.ahead(p); d < sent && d < holdSpan {
				x.kept[p%holdSpan/64] |= 1 << (p % 64)
				top = p
			}
		}
	}
	return top
}

// keeps tells whether the peer keeps a PSN.
func (x *selective) keeps(p wire.PSN) bool { return x.kept[p%holdSpan/64]&(1<<(p%64)) != 0 }

func (x *selective) unkeep(p wire.PSN) { x.kept[p%holdSpan/64] &^= 1 << (p % 64) }

// passed forgets what is kept before una.
func (x *selective) passed(una wire.PSN) {
	for n := min(uint32(una.Sub(uint32(x.keptFrom))), holdSpan); n > 0; n-- {
		x.unkeep(una.Sub(n))
	}
	x.keptFrom = una
}

// skipHeld moves psn over what the peer keeps, and at the end of the round to
// what was never sent.
func (q *QP) skipHeld() {
	x, r := q.sel, &q.req
	q.skipEarly()
	if !x.redoing {
		return
	}
	for ; r.psn != r.sentTop; q.skipEarly() {
		// A top that was answered meanwhile lies far ahead.
		if top := r.ahead(x.top); r.ahead(r.psn) >= top || top >= 1<<23 {
			break
		}
		if !x.keeps(r.psn) {
			return
		}
		w := q.sq.at(r.cur)
		if next := r.psn.Add(1); sendOps[w.opcode].reply == replyAck && next != w.last.Add(1) {
			r.psn = next
			continue
		}
		r.psn = w.last.Add(1)
		r.cur++
	}
	x.redoing = false
	for r.cur != r.new && r.ahead(q.sq.at(r.cur).last) < r.ahead(r.sentTop) {
		r.cur++
	}
	r.psn = r.sentTop
}

// skipEarly moves psn over the part of a READ whose data is here already, and
// waits for what lies before it.
func (q *QP) skipEarly() {
	x, r := q.sel, &q.req
	for x.early.has(r.psn) && r.cur != r.new {
		w := q.sq.at(r.cur)
		if sendOps[w.opcode].reply != replyData {
			return // no data can answer it: that response ends the QP in its turn
		}
		if r.psn == w.last {
			r.cur++
		}
		r.psn = r.psn.Add(1)
	}
}

// holdResponse keeps a READ response behind a gap. It reports false when the
// response is not one, or there is no room for it.
func (q *QP) holdResponse(now Time, p *wire.Packet) bool {
	x, r, psn := q.sel, &q.req, p.BTH.PSN
	reached := q.reach(now, psn)
	if q.State() == StateErr {
		// What it acknowledged made a request the oldest that had failed.
		q.drop(p, stepResponse)
		return true
	}
	if reached {
		return false
	}
	x.early.advance(x.pool, r.una)
	if x.early.has(psn) {
		return true
	}
	if !x.early.put(x.pool, p) {
		return false
	}
	q.count.Inc(counter.HeldEarly)
	if r.retried {
		if x.earlyGap.packets++; x.earlyGap.packets%askAgain == 0 {
			q.askHole(now)
		}
	} else if x.lost(&x.earlyGap, now) {
		q.askHole(now)
	}
	return true
}

// reach retires what lies before a PSN, and tells whether it is now the oldest.
func (q *QP) reach(now Time, psn wire.PSN) bool {
	before := q.req.una
	reached := q.retire(now, psn)
	if q.req.una != before {
		q.progress(now)
	}
	return reached
}

// askHole asks again for the part of a READ that is missing at una.
func (q *QP) askHole(now Time) {
	x, r := q.sel, &q.req
	q.count.Inc(counter.ImpliedNAK)
	r.retried = true
	q.retryFrom(now, r.una)
	if q.State() != StateErr {
		x.redo(x.early.hole(r.una, r.sentTop), r.sentTop)
	}
}

// nextHeldResponse returns the READ response that is awaited now, nil when it has
// not come.
func (q *QP) nextHeldResponse(now Time) *wire.Packet {
	x, r := q.sel, &q.req
	x.early.advance(x.pool, r.una)
	if x.early.n == 0 {
		x.earlyGap = gap{}
		return nil
	}
	first := x.early.hole(r.una, r.una.Add(holdSpan))
	if q.reach(now, first) {
		return x.early.take(x.pool, first)
	}
	if x.earlyGap = (gap{}); q.State() != StateErr && x.lost(&x.earlyGap, now) {
		q.askHole(now)
	}
	return nil
}
