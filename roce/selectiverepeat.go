package roce

import (
	"xroce/roce/counter"
	"xroce/roce/recovery"
	"xroce/roce/wire"
)

// selectiveRepeat is the loss recovery of a requester with extensions: the peer keeps
// what came behind a gap and says so, and only what is missing goes again. In the other
// direction responses with data that come early wait here. They are handled in order all
// the same, so work requests complete as they always do.
//
// What is known of PSNs is in roce/recovery; here is what it means for work requests.
type selectiveRepeat struct {
	r     *requester
	board recovery.Scoreboard
	probe recovery.TailProbe
	data  recovery.Reassembly // responses with data behind a gap
	gap   recovery.Gap        // before the first of them
	// bitmaps says that the peer tells what it keeps (ExtSelectiveRepeat): only then
	// the acknowledge of one packet tells what else is missing.
	bitmaps bool
	// timeouts counts those since una last moved; oldestOnly says that una alone was
	// sent again for one, and more is when that is acknowledged.
	timeouts   uint8
	oldestOnly bool
	payments
}

// soloTimeouts is how many timeouts in a row send one packet before everything goes
// again: that packet may be lost, too.
const soloTimeouts = 2

func newSelectiveRepeat(r *requester, e Extensions, pool *recovery.Pool) *selectiveRepeat {
	reorder := e&ExtReorderWindow != 0
	x := &selectiveRepeat{
		r: r, board: recovery.NewScoreboard(reorder), probe: recovery.NewTailProbe(reorder),
		gap: recovery.NewGap(reorder), bitmaps: e&ExtSelectiveRepeat != 0,
	}
	x.data.Init(pool)
	return x
}

func (x *selectiveRepeat) restart(psn wire.PSN) {
	x.board.Restart(psn)
	x.probe, x.payments = x.probe.Fresh(), payments{}
}

func (x *selectiveRepeat) stop() {
	x.data.Clear()
	x.gap.Close()
	x.probe.Disarm()
	x.board.ForgetSacked()
}

// span is the number of PSNs that the buffers and the scoreboard cover.
func (x *selectiveRepeat) span() uint32    { return recovery.Span }
func (x *selectiveRepeat) selective() bool { return true }
func (x *selectiveRepeat) probing() bool   { return x.probe.Pending() }

// readEnd is the first packet that is here already: the responder repeats one part of
// a READ at a time.
func (x *selectiveRepeat) readEnd(psn, end wire.PSN) wire.PSN { return x.data.First(psn, end) }

func (x *selectiveRepeat) sent(now Time, psn wire.PSN, w *sendWQE, first bool) {
	data := w.needsResponse()
	if data && !first {
		x.board.Request(psn, x.data.First(psn, x.r.psn))
	}
	x.board.Sent(psn, first)
	x.probe.Sent(now, psn, first, data || x.r.sinceAck == 0)
	x.rearm(now)
}

func (x *selectiveRepeat) acknowledged(now Time, psn wire.PSN) { x.r.acknowledge(now, psn) }

func (x *selectiveRepeat) advanced(now Time) {
	una := x.r.una
	x.probe.Acknowledged(now, una, x.board.Sacked())
	x.board.Advance(una)
	x.timeouts, x.payments = 0, payments{}
	x.probe.Advanced(now)
	if x.oldestOnly {
		x.r.goBack(una)
		x.beginRound()
	}
}

// rearm sets the time of the next probe, counted from now or from when the next packet
// may go. There is none when the local ACK timer is to expire first, or is off.
func (x *selectiveRepeat) rearm(now Time) {
	if !x.bitmaps || x.r.una == x.r.sentTop {
		x.probe.Disarm()
		return
	}
	x.probe.Arm(x.r.pace.Next(now), x.r.ackAt)
}

func (x *selectiveRepeat) wentBack(now Time) {
	x.payments = payments{paid: true, paidAt: now, repeatedAt: now}
	x.beginRound()
}

// beginRound makes everything that was ever sent the next repetition.
func (x *selectiveRepeat) beginRound() {
	x.board.BeginRound(x.r.sentTop)
	x.beganRepetition()
}

// beganRepetition forgets what an earlier repetition waited for.
func (x *selectiveRepeat) beganRepetition() {
	x.gap.Close()
	x.probe.Abort()
	x.oldestOnly = false
}

// timedOut repeats after a timeout. The tail may be lost, or only its acknowledge: at
// first una alone goes again, if an acknowledge is all it needs, and the acknowledge
// tells what else is missing. When that does not help, everything goes.
func (x *selectiveRepeat) timedOut(now Time) {
	r := x.r
	solo := x.timeouts < soloTimeouts
	x.timeouts = min(x.timeouts+1, soloTimeouts)
	if x.board.Unsack(r.una); !solo {
		x.board.ForgetSacked()
	}
	r.retryFrom(now, r.una)
	if r.State() == StateErr {
		return
	}
	if solo && !r.oldest().needsResponse() {
		x.board.Limit(r.una.Add(1))
		x.oldestOnly = true
	}
}

func (x *selectiveRepeat) refused(psn wire.PSN) {
	x.board.Unsack(psn)
	x.beginRound()
}

func (x *selectiveRepeat) resultDropped() {
	x.refused(x.r.una)
	x.board.Request(x.r.una, x.r.una.Add(1))
}

// handleSelectiveAck takes what the peer expects and has.
func (x *selectiveRepeat) handleSelectiveAck(now Time, p *wire.Packet) {
	r, psn := x.r, p.BTH.PSN
	r.count.Inc(counter.PacketSeqErr)
	var bits [wire.SelectiveBits / 8]byte
	p.CopyPayload(bits[:])
	top := x.board.TakeBitmap(psn, r.sentTop, bits[:])
	x.probe.Acknowledged(now, r.una, x.board.Sacked())
	if !x.requestsMissing(now, psn, top) || r.rnrWait {
		return
	}
	switch first, any := x.firstLost(top); {
	case !any:
		// All of it was sent again after what has arrived.
	case !r.psn.After(first):
		x.board.Extend(top) // it is about to be sent again
	case first == r.una:
		x.repeatUpTo(now, top)
	default:
		// A loss behind the oldest costs no retry.
		r.goBack(first)
		x.board.Extend(top)
		x.board.ContinueRound(r.sentTop)
	}
}

// requestsMissing notes what cannot be acted on yet, because data before psn is
// missing here.
func (x *selectiveRepeat) requestsMissing(now Time, psn, top wire.PSN) bool {
	x.board.Report(top)
	if !x.r.acknowledge(now, psn) {
		x.board.MarkAllLost() // when it can be acted on, all that is out now was sent before
		return false
	}
	x.board.SetReported(psn)
	return true
}

// repeatUpTo sends what is missing again, from una up to a PSN.
func (x *selectiveRepeat) repeatUpTo(now Time, top wire.PSN) {
	if x.premature(now) && !x.board.CertainlyLost(x.r.una) {
		return
	}
	x.r.retried = true
	if x.repeats(now) {
		x.board.RepeatUpTo(top, x.r.sentTop)
		x.beganRepetition()
		x.r.sendFrom(now, x.r.una)
	}
}

// skip moves psn over what need not be sent again, and at the end of a repetition to
// what was never sent.
func (x *selectiveRepeat) skip() {
	r := x.r
	for r.psn != r.sentTop && x.board.RecoveryPoint().After(r.psn) {
		w := r.sq.At(r.cur)
		next := x.after(w, r.psn)
		if next == r.psn {
			return
		}
		if r.psn = next; next == w.last.Add(1) {
			r.cur++
		}
	}
	for r.cur != r.new && r.ahead(r.sq.At(r.cur).last) < r.ahead(r.sentTop) {
		r.cur++
	}
	r.psn = r.sentTop
}

// after returns the PSN behind those, from psn on and of one work request, that need
// not be sent again; psn itself when it must.
func (x *selectiveRepeat) after(w *sendWQE, psn wire.PSN) wire.PSN {
	data := w.needsResponse()
	return x.board.Skip(psn, w.last, data, data && x.data.Has(psn))
}

// firstLost returns the first PSN before top that the peer misses and that is not on
// its way again.
func (x *selectiveRepeat) firstLost(top wire.PSN) (first wire.PSN, any bool) {
	r := x.r
	i, p := r.sq.Head(), r.una
	for top.After(p) {
		w := r.sq.At(i)
		if next := x.after(w, p); next != p {
			p = next
		} else if x.board.Lost(p) {
			return p, true
		} else {
			p = w.last.Add(1) // data is requested again when its response fails to come
		}
		if p == w.last.Add(1) {
			i++
		}
	}
	return 0, false
}
