package roce

import (
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// probeTail sends one packet again after silence, unless the oldest is about to go in
// any case, or an RNR NAK is waited out. Its acknowledge tells what is missing, long
// before the local ACK timer expires. A probe does not show whether the peer is alive,
// so it costs no retry.
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
// everything before it that is missing. It is not chosen when its response costs the peer
// more than an acknowledge, or when the oldest was sent again and is not acknowledged:
// then, and when a probe was in vain, the oldest goes, which may be all that is missing.
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
	if w.needsResponse() || x.board.Sacked().Has(newest) || r.credit.exceeded(w) {
		return r.una
	}
	return newest
}
