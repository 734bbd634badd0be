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
//
// The packet has n bytes of payload.
func (r *requester) wantsAck(now Time, last bool, n uint32) bool {
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
			ack = again || !r.nextFollows(now) || r.pace.Pauses(now, r.path.Len()+int(n))
		default:
			ack = r.credit.exceeded(r.sq.At(r.cur))
		}
	}
	if ack {
		r.sinceAck = 0
	}
	return ack
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

// ask sends the newest packet again, with AckReq, when the requester has to wait though
// that one counted on another to ask: without an answer what was sent would not
// complete, and its timer would find a peer silent that owes nothing. No retry is used
// for it.
func (r *requester) ask(now Time, frame []byte) int {
	for r.State().Sends() {
		end, is := r.unasked()
		if !is {
			return 0
		}
		if r.paced = r.pace.Early(now); r.paced {
			return 0
		}
		psn, cur, stalls := r.psn, r.cur, r.stalls
		r.psn = end.Sub(1)
		r.cur = r.entryOf(r.psn)
		w := r.sq.At(r.cur)
		r.sinceAck = ackEvery // so this one asks
		n := r.putWork(now, w, frame)
		if n > 0 {
			r.stalls = stalls
			r.pace.Spend(now, n)
			r.startAckTimer(now)
			r.recovery.sent(now, end.Sub(1), w, false)
			return n
		}
		if !r.failed || r.failAt != r.cur {
			r.psn, r.cur = psn, cur // it waits for a page, too
			return 0
		}
	}
	return 0 // that one cannot be sent was the end
}

// nextFollows reports whether the work request behind cur is sure to be sent.
func (r *requester) nextFollows(now Time) bool {
	next := r.cur + 1
	return (next != r.new || r.begin(now)) && !(r.failed && r.failAt == next)
}
