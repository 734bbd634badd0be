package roce

import (
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// probeTail sends one packet again after silence, unless the oldest is about to go in
// any case, or the peer asked for patience. Long before the local ACK timer would, the
// answer tells what is missing. It says nothing about the peer's life, so it costs no
// retry.
func (x *selectiveRepeat) probeTail(now Time) {
	r := x.r
	x.probe.Disarm()
	switch {
	case r.una == r.sentTop || r.psn == r.una || r.rnrWait:
		return
	case r.stalled:
		x.rearm(now) // nothing can be sent for want of a page
		return
	}
	psn := x.probePSN()
	r.count.Inc(counter.TailProbes)
	x.probe.Fire(now)
	r.goBack(psn)
	x.board.Probe(psn, r.sentTop)
}

// probePSN chooses what to send again. The newest packet makes the peer tell of
// everything before it that is missing. It is no choice when its answer costs the peer
// more than an acknowledge, or when it was a repetition of the oldest that was not heard
// of: then, and when a probe was in vain, the oldest goes, which may be all that is
// missing.
func (x *selectiveRepeat) probePSN() wire.PSN {
	r := x.r
	newest, i := r.sentTop.Sub(1), r.cur
	if r.psn != r.sentTop || x.probe.InVain() || x.board.Retransmitted(r.una) || r.failed {
		return r.una
	}
	if i == r.new || r.sq.At(i).first == r.psn {
		i--
	}
	w := r.sq.At(i)
	if w.answeredByData() || x.board.Sacked().Has(newest) || r.credit.exceeded(w) {
		return r.una
	}
	return newest
}
