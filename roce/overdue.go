package roce

import "xroce/roce/clock"

// A local ACK timer that has run out says that the peer did not answer in time, or
// that whoever drives the QP was late: late to look at what came, or late to hand
// over what was written. Only the driver can tell, so it asks Overdue before it calls
// HandleDeadline, does first what it has left undone, and puts the timer off with
// Excuse when the packet was not out long enough.

// maxExcuses is how often in a row one timeout may be put off. A timer may take up
// to four times what the attribute says (IBA 9.7.6.1.3).
const maxExcuses = 3

// Overdue reports whether HandleDeadline would now take something for lost that did not
// come in time, rather than end a wait of its own. since is when the local ACK timer
// was started, and now itself when the peer cannot be to blame: nothing was sent since
// the last retry, or the timer is found so late that another whole timeout has passed,
// and with the driver the peer may have been kept from running. It is 0 when only a
// gap is overdue.
func (q *QP) Overdue(now Time) (since Time, overdue bool) {
	r := &q.req
	if !q.req.ackOverdue(now) {
		gap := q.req.recovery.deadline()
		if q.rsp.early != nil {
			gap = clock.Sooner(gap, q.rsp.early.gap.Deadline())
		}
		return 0, gap != 0 && now >= gap
	}
	t := ackTimeout(q.attr.Timeout)
	if r.psn == r.una || (r.excused == 0 && now-r.ackAt >= t) {
		return now, true
	}
	return r.ackAt - t, true
}

// ackOverdue reports whether the local ACK timer has run out.
func (r *requester) ackOverdue(now Time) bool {
	return !r.rnrWait && r.ackAt != 0 && now >= r.ackAt
}

// Excuse lets a local ACK timer that is overdue run from a time on: what the peer is
// to answer left no earlier. It reports false, and HandleDeadline is to be called,
// when the timer would have run out all the same, or was put off three times already.
func (q *QP) Excuse(now, since Time) bool {
	r := &q.req
	at := since + ackTimeout(q.attr.Timeout)
	if !q.req.ackOverdue(now) || at <= now || r.excused == maxExcuses {
		return false
	}
	r.ackAt = at
	r.excused++
	return true
}
