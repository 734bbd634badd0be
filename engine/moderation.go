package engine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"xroce/roce"
)

// Modify sets the moderation of events (ibv_modify_cq): an armed CQ makes its
// event after count completions, or period after the first of them, whichever is
// sooner. It also makes it when it is full, when it is armed for solicited
// completions and one comes, and when the device fails. A count of 0 or 1, or a
// period of 0, ends moderation. Polling sees each completion at once in any case.
func (c *CQ) Modify(count int, period time.Duration) error {
	if count < 0 || count > math.MaxUint16 {
		return fmt.Errorf("%w: moderation count %d is not in 0..%d", roce.ErrInvalid, count,
			math.MaxUint16)
	}
	if period < 0 {
		return fmt.Errorf("%w: moderation period %s is negative", roce.ErrInvalid, period)
	}
	q := c.device.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case c.closed:
		return errClosed
	case q.err != nil:
		return q.err
	}
	c.core.SetModeration(uint16(count), roce.Time(period))
	q.moderate(c, count > 1 && period > 0)
	q.wake() // an event may be due sooner than before
	return nil
}

// moderate puts a CQ into the list of those with moderation, or takes it out.
func (q *queue) moderate(c *CQ, on bool) {
	switch {
	case on && !c.moderated:
		q.moderated = append(q.moderated, c)
	case !on && c.moderated:
		q.moderated = slices.DeleteFunc(q.moderated, func(m *CQ) bool { return m == c })
	}
	c.moderated = on
}

// unmoderate makes the events of all CQs with moderation, and ends it,
// because nobody looks at the clock any more.
func (q *queue) unmoderate() {
	for _, c := range q.moderated {
		c.core.SetModeration(0, 0)
		c.moderated = false
	}
	q.moderated = nil
}

// notifyDue makes the events of CQs with moderation that are due, and reports
// whether there were any.
func (q *queue) notifyDue(now roce.Time) bool {
	any := false
	for _, c := range q.moderated {
		if at, armed := c.core.NextDeadline(); armed && at <= now {
			c.core.HandleDeadline(now)
			any = true
		}
	}
	return any
}

// nextDeadline is when the queue wants to be driven in any case.
func (q *queue) nextDeadline() (roce.Time, bool) {
	at, ok := q.timers.Next()
	for _, c := range q.moderated {
		if t, armed := c.core.NextDeadline(); armed && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}
