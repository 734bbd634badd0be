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

// selective is the state of the extensions of a QP: packets that came too early,
// in both directions, and what the peer keeps of ours.
//
// Nothing is executed early: packets wait in rings and pass through the same
// steps as all others when their turn comes, so that order, MSN, RNR and errors
// are those of the architecture. What the peer says it keeps, it keeps until it
// is executed; the one exception is a packet that it then refuses with an RNR
// NAK.
type selective struct {
	ext   Extensions
	pool  *HoldPool
	late  holdRing // requests behind a gap, at the responder
	early holdRing // answers with data behind a gap, at the requester

	// When the open gap before what is kept becomes a loss, 0 for never.
	lateGap, earlyGap Time

	// Of the PSNs from una on: what the peer keeps of our requests, and from
	// where on data that is missing here was asked for again.
	kept, asked psnSet
	noted       wire.PSN // una as it was when they were last cleared up to it

	// Everything before told was executed by the peer, though data of it may
	// be missing here; from una up to want there are requests that the peer
	// said are missing there. Neither lies before una.
	told, want wire.PSN

	// A round of repetition goes up to top. What is sent from mark on was not
	// sent yet when it began: when that arrives and something from the round
	// has not, the latter was lost again.
	top, mark wire.PSN
	again     int // answers behind a gap since it was last asked for
	// tried counts the timeouts since una last moved; probe says that una
	// alone was sent again for it: more when the peer has answered.
	tried uint8
	probe bool
}

// A psnSet is a set of PSNs, none holdSpan or more ahead of another.
type psnSet [holdSpan / 64]uint64

func (s *psnSet) has(p wire.PSN) bool { return s[p%holdSpan/64]&(1<<(p%64)) != 0 }
func (s *psnSet) add(p wire.PSN)      { s[p%holdSpan/64] |= 1 << (p % 64) }
func (s *psnSet) remove(p wire.PSN)   { s[p%holdSpan/64] &^= 1 << (p % 64) }

// extend switches extensions on.
func (q *QP) extend(e Extensions) {
	if q.sel != nil {
		q.sel.clear()
		q.sel = nil
	}
	q.req.window = q.req.configured
	if e != 0 {
		q.holds.fill()
		q.sel = &selective{ext: e, pool: q.holds}
		q.req.window = min(q.req.configured, holdSpan)
	}
}

// restart begins a connection at a PSN.
func (x *selective) restart(psn wire.PSN) {
	x.forget()
	x.noted, x.told, x.want, x.top, x.mark = psn, psn, psn, psn, psn
}

// clear gives back what is kept.
func (x *selective) clear() {
	x.late.clear(x.pool)
	x.early.clear(x.pool)
	x.lateGap, x.earlyGap = 0, 0
	x.forget()
}

// forget takes the peer to keep nothing: so it is told all again.
func (x *selective) forget() { x.kept = psnSet{} }

// deadline is when a gap becomes a loss, 0 for never.
func (x *selective) deadline() Time { return sooner(x.lateGap, x.earlyGap) }

// understands tells whether a packet is one of the extensions.
func (q *QP) understands(p *wire.Packet) bool {
	return p.BTH.Opcode == wire.SelectiveAck && q.sel != nil
}

// lost tells whether a gap that n packets have overtaken is a loss. When it may
// still close, it gets a time.
func (x *selective) lost(gap *Time, n int, now Time) bool {
	if x.ext&ExtReorderWindow == 0 || n >= reorderPackets {
		*gap = 0
		return true
	}
	if *gap == 0 {
		*gap = now + reorderDelay
	}
	return false
}

// selectiveDeadline treats gaps that stayed open too long as losses.
func (q *QP) selectiveDeadline(now Time) {
	x := q.sel
	if x.lateGap != 0 && now >= x.lateGap {
		x.lateGap = 0
		q.tellGap()
	}
	if x.earlyGap != 0 && now >= x.earlyGap {
		x.earlyGap = 0
		q.askAgain(now)
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
	switch {
	case x.late.has(p.BTH.PSN):
		q.count.Inc(counter.DuplicateRequest)
	case x.late.put(x.pool, p):
		q.count.Inc(counter.HeldEarly)
	default:
		return false
	}
	switch {
	case s.gap:
		// It was told; who asks hears it again, unless nothing is missing.
		if p.BTH.AckReq && !s.refused {
			s.fifo.nak(s.psn, wire.NAKPSNSequenceError)
		}
	case x.lost(&x.lateGap, x.late.n, now):
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
	s.gap, s.refused = true, false
	s.fifo.nak(s.psn, wire.NAKPSNSequenceError)
}

// nextHeldRequest returns the request that is expected now, nil when it has not
// come. What waits behind it then makes the next gap.
func (q *QP) nextHeldRequest(now Time) *wire.Packet {
	x, s := q.sel, &q.rsp
	x.lateGap = 0
	if x.late.n == 0 {
		return nil
	}
	x.late.advance(x.pool, s.psn)
	if p := x.late.take(x.pool, s.psn); p != nil {
		return p
	}
	if x.late.n > 0 && x.lost(&x.lateGap, x.late.n, now) {
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
	b := frame[q.path.Len():]
	spec := q.putBTH(b, wire.BTH{Opcode: wire.SelectiveAck, PSN: s.psn}, 0)
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
	top := x.keep(psn, p, r)
	if !q.missing(now, psn, top) || r.rnrWait {
		return
	}
	// In a round that is under way psn was sent again already, unless something
	// that was sent after it has come. But the round may have more to do.
	if x.top.After(psn) && !top.After(x.mark) {
		if top.After(x.top) {
			q.extendRound(top)
		}
		return
	}
	q.repeat(now, top)
}

// repeat sends what is missing again, from una up to a PSN.
func (q *QP) repeat(now Time, top wire.PSN) {
	r := &q.req
	r.retried = true
	q.retryFrom(now, r.una)
	if q.State() == StateErr {
		return
	}
	q.sel.top = top
	if !q.sel.want.After(top) {
		q.sel.want = r.una
	}
}

// extendRound moves the end of a round on. This is news of another loss, and costs
// no retry.
func (q *QP) extendRound(top wire.PSN) {
	x, r := q.sel, &q.req
	if !x.top.After(r.psn) {
		q.goBack(x.top)
		x.mark = r.sentTop
	}
	x.top = top
}

// beginRound makes everything that was ever sent the next round.
func (x *selective) beginRound(sentTop wire.PSN) {
	x.top, x.mark, x.again, x.earlyGap = sentTop, sentTop, 0, 0
	x.asked, x.probe = psnSet{}, false
}

// probes is how many timeouts in a row ask before everything is sent again: the
// question may be lost, too.
const probes = 2

// selectiveTimeout repeats after a timeout. The tail may be lost, or only the
// answer to it: at first una alone goes again, if it needs no data to be answered,
// and the answer tells what else is missing. When that does not help, everything
// goes.
func (q *QP) selectiveTimeout(now Time) {
	x, r := q.sel, &q.req
	first := x.tried < probes
	x.tried = min(x.tried+1, probes)
	if x.kept.remove(r.una); !first {
		x.forget()
	}
	q.retryFrom(now, r.una)
	if q.State() == StateErr {
		return
	}
	if w := q.sq.at(q.sq.head.Load()); first && sendOps[w.opcode].reply == replyAck {
		x.top, x.probe = r.una.Add(1), true
	}
}

// probed follows the answer to what was sent again after a timeout.
func (q *QP) probed() {
	q.goBack(q.req.una)
	q.sel.beginRound(q.req.sentTop)
}

// missing is answered for a NAK, which tells that from psn up to top requests are
// missing at the peer. When this cannot be acted on yet, because data before psn
// is missing here, it is kept in mind.
func (q *QP) missing(now Time, psn, top wire.PSN) bool {
	x := q.sel
	if x != nil && top.After(x.want) {
		x.want = top
	}
	reached := q.answered(now, psn)
	if x != nil && reached {
		x.want = psn
	}
	return reached
}

// keep notes what the peer keeps behind psn, which it does not, and returns the
// PSN behind the last. A peer that keeps nothing had no room for what came.
func (x *selective) keep(psn wire.PSN, p *wire.Packet, r *requester) wire.PSN {
	var bits [wire.SelectiveBits / 8]byte
	p.CopyPayload(bits[:])
	top, sent := r.sentTop, r.ahead(r.sentTop)
	x.kept.remove(psn)
	for i, b := range bits {
		for bit := range 8 {
			p := psn.Add(uint32(1 + 8*i + bit))
			if b&(1<<bit) == 0 {
				continue
			}
			if d := r.ahead(p); d < sent && d < holdSpan {
				x.kept.add(p)
				top = p.Add(1)
			}
		}
	}
	return top
}

// passed forgets what lies before una.
func (x *selective) passed(una wire.PSN) {
	for n := min(uint32(una.Sub(uint32(x.noted))), holdSpan); n > 0; n-- {
		x.kept.remove(una.Sub(n))
		x.asked.remove(una.Sub(n))
	}
	x.noted, x.tried = una, 0
	for _, p := range [...]*wire.PSN{&x.told, &x.want, &x.top, &x.mark} {
		if !p.After(una) {
			*p = una
		}
	}
}

// skipKept moves psn over what need not be sent again, and at the end of a round
// to what was never sent.
func (q *QP) skipKept() {
	x, r := q.sel, &q.req
	if r.psn == r.sentTop {
		return
	}
	for r.psn != r.sentTop && x.top.After(r.psn) {
		w := q.sq.at(r.cur)
		end := w.last.Add(1)
		switch {
		case sendOps[w.opcode].reply == replyAck:
			if !x.kept.has(r.psn) && !x.told.After(r.psn) {
				return
			}
			r.psn = r.psn.Add(1)
		case x.early.has(r.psn):
			r.psn = r.psn.Add(1)
		case (x.kept.has(r.psn) && !x.told.After(r.psn)) ||
			(x.asked.has(r.psn) && r.psn != r.una):
			r.psn = end
		default:
			return
		}
		if r.psn == end {
			r.cur++
		}
	}
	for r.cur != r.new && r.ahead(q.sq.at(r.cur).last) < r.ahead(r.sentTop) {
		r.cur++
	}
	r.psn = r.sentTop
}
