package roce

import "xroce/roce/wire"

// credit is the requester's view of the peer's receive queue (IBA 9.7.7.2).
// Messages are numbered from 1 (SSN). An acknowledge with a credit count says
// up to which number the peer has receives (LSN); a message beyond it that
// needs one may only be sent one packet at a time, each of which
// asks for an acknowledge.
type credit struct {
	ssn     uint32 // number of the last message begun, 24 bits
	lsn     uint32 // number of the last message with a receive, when limited
	limited bool   // the peer counts
}

// update takes the credit count of an acknowledge. The limit never goes back: what
// was posted stays posted, and a smaller number comes from the coarseness of the
// codes.
func (c *credit) update(h wire.AETH) {
	n, ok := wire.Credits(h.Syndrome.Code())
	lsn := (h.MSN + uint32(n)) & 0xffffff
	if !ok || !c.limited || wire.PSN(lsn).After(wire.PSN(c.lsn)) {
		c.lsn = lsn
	}
	c.limited = ok
}

// covers reports whether the peer has a receive for the message with a number.
func (c *credit) covers(ssn uint32) bool {
	return !c.limited || wire.PSN(ssn).Diff(wire.PSN(c.lsn)) <= 0
}

// exceeded reports whether a begun work request was begun without a credit and the
// peer has not granted one since. One that began with a credit may go on to its end.
func (c *credit) exceeded(w *sendWQE) bool { return w.overCredit && !c.covers(w.ssn) }

// takeCredits takes the credit count of an acknowledge, if the two ends count.
func (r *requester) takeCredits(h wire.AETH) {
	if !r.attr.NoFlowControl {
		r.credit.update(h)
	}
}
