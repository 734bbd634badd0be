package roce

// The local ACK timer runs while something waits for an answer (IBA 9.7.6.1.3).

// ackTimeoutUnit is the unit of the local ACK timeout (IBA 9.7.6.1.3).
const ackTimeoutUnit = 4096 * Nanosecond

// ackTimeout returns 4.096 us * 2^code, 0 (no timer) for code 0.
func ackTimeout(code uint8) Time {
	if code == 0 {
		return 0
	}
	return ackTimeoutUnit << (code & 31)
}

// startAckTimer starts the local ACK timer from now, or from when the next packet
// may go: until then the peer has nothing to acknowledge.
func (r *requester) startAckTimer(now Time) {
	r.ackAt, r.postponed = 0, 0
	if t := ackTimeout(r.attr.Timeout); t != 0 {
		r.ackAt = r.pace.Next(now) + t
	}
}

// hastenAckTimer has the timer, if it runs, expire no later than if it were started now. It does
// not start anew: who calls this often would never hear that the peer is gone.
func (r *requester) hastenAckTimer(now Time) {
	if r.ackAt != 0 {
		r.ackAt = min(r.ackAt, r.pace.Next(now)+ackTimeout(r.attr.Timeout))
	}
}

// changeAckTimer starts the timer of what is under way anew, since TIMEOUT was set.
func (r *requester) changeAckTimer(now Time) {
	if r.rnrWait {
		return // it starts behind that
	}
	if r.ackAt = 0; r.una != r.sentTop && !(r.stalled && r.psn == r.una) {
		r.startAckTimer(now)
	}
	r.recovery.rearm(now)
}

// ackTimerExpired reports whether the local ACK timer has run out.
func (r *requester) ackTimerExpired(now Time) bool {
	return !r.rnrWait && r.ackAt != 0 && now >= r.ackAt
}
