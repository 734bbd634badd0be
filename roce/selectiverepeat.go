package roce

import (
	mathbits "math/bits"

	"xroce/roce/counter"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// This file is about what the requester of a QP with extensions sends again.

// handleSelectiveAck takes what the peer expects and keeps.
func (q *QP) handleSelectiveAck(now Time, p *wire.Packet) {
	x, r, psn := q.sel, &q.req, p.BTH.PSN
	q.count.Inc(counter.PacketSeqErr)
	top := x.keep(now, psn, p, r)
	if !q.missing(now, psn, top) || r.rnrWait {
		return
	}
	switch first, any := q.firstMissed(top); {
	case !any:
		// All of it was sent again after what has arrived.
	case !r.psn.After(first):
		x.stretch(top) // it is about to be sent again
	case first == r.una:
		q.repeat(now, top)
	default:
		// News of a loss behind the oldest costs no retry.
		q.goBack(first)
		x.stretch(top)
		x.mark = r.sentTop
	}
}

// repeat sends what is missing again, from una up to a PSN.
func (q *QP) repeat(now Time, top wire.PSN) {
	r, seen, repeated := &q.req, q.sel.seen, q.sel.repeated
	r.retried = true
	q.retryFrom(now, r.una)
	if q.State() == StateErr {
		return
	}
	q.sel.top, q.sel.seen, q.sel.repeated = top, seen, repeated
	if !q.sel.want.After(top) {
		q.sel.want = r.una
	}
}

// stretch moves the end of a round on.
func (x *selective) stretch(top wire.PSN) {
	if top.After(x.top) {
		x.top = top
	}
}

// beginRound makes everything that was ever sent the next round.
func (x *selective) beginRound(sentTop wire.PSN) {
	x.top, x.mark, x.again, x.earlyGap = sentTop, sentTop, 0, 0
	x.missAll()
	x.asked, x.alone = psnSet{}, false
	x.probe.at, x.probe.asks = 0, false
}

// missAll takes everything that was sent and is not known to have arrived for lost.
func (x *selective) missAll() { x.seen, x.repeated = x.sent, psnSet{} }

// wasSent follows a packet that was sent with a PSN.
func (x *selective) wasSent(psn wire.PSN, first bool) {
	x.sent++
	x.sentAs[psn%holdSpan] = x.sent
	if x.repeated.remove(psn); !first {
		x.repeated.add(psn)
	}
}

// arrived notes that the peer has what was sent with a PSN. The PSNs of the answers
// to a READ were never sent: what stands for them is old.
func (x *selective) arrived(psn wire.PSN) {
	if n := x.sentAs[psn%holdSpan]; n-x.seen <= x.sent-x.seen {
		x.seen = n
	}
}

// missed reports whether a PSN that has not arrived was lost, since something that was
// sent after it has. Where packets overtake each other the peer has waited before it
// called its first gap a loss; of others, and of repetitions, it is for us to judge.
func (x *selective) missed(psn wire.PSN) bool {
	n := x.sentAs[psn%holdSpan]
	if x.ext&ExtReorderWindow != 0 && (psn != x.noted || x.repeated.has(psn)) {
		n += reorderPackets
	}
	return int32(n-x.seen) <= 0
}

// miss takes a PSN for lost.
func (x *selective) miss(psn wire.PSN) {
	x.kept.remove(psn)
	x.repeated.remove(psn)
	x.sentAs[psn%holdSpan] = x.seen
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
	if w := q.sq.At(q.sq.Head()); first && w.opcode.Op().Reply == verbs.ReplyAck {
		x.top, x.alone = r.una.Add(1), true
	}
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
	switch {
	case x == nil:
	case reached:
		x.want = psn
	default:
		x.missAll() // by the time it can be
	}
	return reached
}

// keep notes what the peer keeps behind psn, which it does not, and returns the
// PSN behind the last. A peer that keeps nothing had no room for what came: all
// from psn on is missing, unless it was sent again for that already.
func (x *selective) keep(now Time, psn wire.PSN, p *wire.Packet, r *requester) wire.PSN {
	var bits [wire.SelectiveBits / 8]byte
	p.CopyPayload(bits[:])
	sent := r.ahead(r.sentTop)
	top := psn.Add(1)
	x.kept.remove(psn)
	for i, b := range bits {
		for ; b != 0; b &= b - 1 {
			p := psn.Add(uint32(1 + 8*i + mathbits.TrailingZeros8(b)))
			if d := r.ahead(p); d < sent && d < holdSpan {
				if !x.kept.has(p) {
					x.kept.add(p)
					x.arrived(p)
				}
				top = p.Add(1)
			}
		}
	}
	if bits == [wire.SelectiveBits / 8]byte{} && !x.top.After(psn) {
		x.missAll()
		top = r.sentTop
	}
	x.measure(now, r.una)
	return top
}

// passed forgets what lies before una.
func (x *selective) passed(una wire.PSN) {
	for n := min(uint32(una.Sub(uint32(x.noted))), holdSpan); n > 0; n-- {
		if p := una.Sub(n); x.kept.has(p) {
			x.kept.remove(p)
		} else {
			x.arrived(p)
		}
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
		w := q.sq.At(r.cur)
		next := q.passOver(w, r.psn)
		if next == r.psn {
			return
		}
		if r.psn = next; next == w.last.Add(1) {
			r.cur++
		}
	}
	for r.cur != r.new && r.ahead(q.sq.At(r.cur).last) < r.ahead(r.sentTop) {
		r.cur++
	}
	r.psn = r.sentTop
}

// passOver returns the PSN behind those, from psn on and of one work request, that
// need not be sent again; psn itself when it must.
func (q *QP) passOver(w *sendWQE, psn wire.PSN) wire.PSN {
	x := q.sel
	executed := x.told.After(psn)
	switch {
	case w.opcode.Op().Reply == verbs.ReplyAck:
		if executed || x.kept.has(psn) || !x.missed(psn) {
			return psn.Add(1)
		}
	case x.early.has(psn):
		return psn.Add(1)
	case !executed && x.kept.has(psn),
		x.asked.has(psn) && psn != q.req.una && (executed || !x.missed(psn)):
		return w.last.Add(1)
	}
	return psn
}

// firstMissed returns the first PSN before top that the peer misses and that is not
// on its way again.
func (q *QP) firstMissed(top wire.PSN) (first wire.PSN, any bool) {
	x, r := q.sel, &q.req
	i, p := q.sq.Head(), r.una
	for top.After(p) {
		w := q.sq.At(i)
		if next := q.passOver(w, p); next != p {
			p = next
		} else if x.missed(p) {
			return p, true
		} else {
			p = w.last.Add(1) // data is asked for when its answer fails to come
		}
		if p == w.last.Add(1) {
			i++
		}
	}
	return 0, false
}
