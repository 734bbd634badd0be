package roce

import (
	"xroce/roce/clock"
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

	// Of the PSNs from una on: what the peer keeps of our requests, and which
	// data that is missing here was asked for again.
	kept, asked psnSet
	noted       wire.PSN // una as it was when they were last cleared up to it

	// Everything before told was executed by the peer, though data of it may
	// be missing here; from una up to want there are requests that the peer
	// said are missing there. Neither lies before una.
	told, want wire.PSN

	// A round of repetition goes up to top. Of it goes what is missing and was
	// sent before something that has arrived: see missed.
	top    wire.PSN
	sent   uint32           // packets, repetitions too
	seen   uint32           // of these, the latest known to have arrived
	sentAs [holdSpan]uint32 // which of them a PSN last was
	// What was sent again since all was last taken for lost.
	repeated psnSet
	// What is sent from mark on was not sent yet when the round began: when an
	// answer to that comes and data from the round has not, it was lost again.
	mark  wire.PSN
	again int // answers behind a gap since it was last asked for
	// tried counts the timeouts since una last moved; alone says that una
	// alone was sent again for it: more when the peer has answered.
	tried uint8
	alone bool

	probe tailProbe
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
	x.probe = tailProbe{}
}

// clear gives back what is kept.
func (x *selective) clear() {
	x.late.clear(x.pool)
	x.early.clear(x.pool)
	x.lateGap, x.earlyGap = 0, 0
	x.probe.at = 0
	x.forget()
}

// forget takes the peer to keep nothing: so it is told all again.
func (x *selective) forget() { x.kept = psnSet{} }

// deadline is when a gap becomes a loss, or silence a question; 0 for never.
func (x *selective) deadline() Time {
	return clock.Sooner(x.probe.at, clock.Sooner(x.lateGap, x.earlyGap))
}

// understands reports whether a packet is one of the extensions.
func (q *QP) understands(p *wire.Packet) bool {
	return p.BTH.Opcode == wire.SelectiveAck && q.sel != nil
}

// lost reports whether a gap that n packets have overtaken is a loss. When it may
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

// selectiveDeadline treats gaps that stayed open too long as losses, and asks when
// nothing was heard for too long.
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
	if x.probe.at != 0 && now >= x.probe.at {
		q.probeTail(now)
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

// tellsAgain reports whether a peer that asks with a duplicate hears of the gap, of
// which it was told once, rather than that all before it has come.
func (q *QP) tellsAgain() bool {
	return q.sel != nil && q.sel.ext&ExtSelectiveRepeat != 0 && q.rsp.gap && !q.rsp.refused
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
