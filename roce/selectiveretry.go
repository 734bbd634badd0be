package roce

// What tells that the oldest packet was lost is a packet of the peer, and one burst of the
// requester makes many of those: as long as packets of before the repetition are on their
// way, each may seem to tell that the repetition was lost, too, though it cannot have arrived
// yet. So RETRY_CNT counts time, as it does for a peer that is silent: what is lost again
// within a local ACK timeout goes again at the same price. And what may be of before the
// repetition is not acted on so early that it must be.

// payments is what the present oldest packet has cost a requester with selective repeat.
type payments struct {
	paid       bool
	paidAt     Time // when a retry was last taken for it
	repeatedAt Time // when it was last decided to send it again
}

// repeats pays for sending the oldest packet again, and reports false when RETRY_CNT is used
// up: then the oldest work request has failed.
func (x *selectiveRepeat) repeats(now Time) bool {
	r := x.r
	x.repeatedAt = now
	if x.paid && now-x.paidAt < ackTimeout(r.attr.Timeout) {
		r.sentAgain(now)
		return true
	}
	x.paid, x.paidAt = true, now
	return r.takeRetry(now)
}

// premature reports whether what arrives now may be an answer to what was sent before the
// oldest packet went again: half a round trip has not passed since, or none was measured.
func (x *selectiveRepeat) premature(now Time) bool {
	trip := x.probe.RoundTrip()
	return x.paid && (trip == 0 || now-x.repeatedAt < trip/2)
}
