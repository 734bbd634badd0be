package roce

import "xroce/roce/wire"

// This file decides which packets ask for an acknowledge.

// ackEvery is how many packets may pass without one that asks for an ACK. An
// acknowledge costs both hosts as much as a request.
const ackEvery = 64

// wantsAck decides whether the packet psn asks for an ACK (IBA 9.7.5.1.2). The
// choice is the requester's: the last packet of a message asks, unless the next
// message is to follow at once and its end will; every ackEvery-th packet asks; so
// do the packet that closes the window and, since the first try was in vain,
// the end of a message that is sent again. A packet that goes without credit asks,
// too. Where only what was lost is sent again, each of those asks.
func (r *requester) wantsAck(now Time, last bool) bool {
	if !r.typ.Reliable() {
		return false
	}
	r.sinceAck++
	ack := uint32(r.sinceAck) >= min(ackEvery, r.window/2) || r.ahead(r.psn)+1 >= r.window
	if !ack {
		again := r.ahead(r.psn) < r.ahead(r.sentTop)
		switch {
		case again && r.recovery.selective():
			ack = true
		case last:
			ack = again || !r.nextFollows(now) ||
				r.pace.Limited() && r.pausesAfter(now, r.sq.At(r.cur))
		default:
			ack = r.credit.exceeded(r.sq.At(r.cur))
		}
	}
	if ack {
		r.sinceAck = 0
		r.asks(r.psn.Add(1))
	}
	return ack
}

// asks notes that a packet asks for an answer, and that next is the PSN behind it.
func (r *requester) asks(next wire.PSN) {
	if next.After(r.asked) {
		r.asked = next
	}
}

// pausesAfter reports whether the rate limit lets what follows the last packet of a work
// request go only much later.
func (r *requester) pausesAfter(now Time, w *sendWQE) bool {
	n := w.length - uint32(w.last.Sub(uint32(w.first)))*r.pmtu()
	return r.pace.Pauses(now, r.path.Len()+int(n))
}

// unasked returns the PSN behind those that were sent, of work requests that can be sent
// to their end, and reports whether the last of them still is to ask for an ACK.
func (r *requester) unasked() (end wire.PSN, is bool) {
	end = r.psn
	if r.failed && r.failAt != r.new {
		if first := r.sq.At(r.failAt).first; end.After(first) {
			end = first
		}
	}
	return end, end.After(r.una) && end.After(r.asked)
}

// nextFollows reports whether the work request behind cur is sure to be sent.
func (r *requester) nextFollows(now Time) bool {
	next := r.cur + 1
	return (next != r.new || r.begin(now)) && !(r.failed && r.failAt == next)
}
