package engine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"xroce/roce"
)

// CQModerationCaps says how far CQ.Modify goes (struct ibv_cq_moderation_caps).
type CQModerationCaps struct {
	MaxCount  int
	MaxPeriod time.Duration
}

// moderationCaps are those of every device. A period may be longer, but verbs has no
// number for it.
var moderationCaps = CQModerationCaps{
	MaxCount: math.MaxUint16, MaxPeriod: math.MaxUint16 * time.Microsecond,
}

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
	d := c.device
	d.lock()
	defer d.unlock()
	switch {
	case c.closed:
		return ErrClosed
	case d.failure() != nil:
		return d.failure()
	}
	c.core.SetModeration(uint16(count), roce.Time(period))
	d.moderateLocked(c, count > 1 && period > 0)
	for _, q := range d.queues {
		q.wake() // an event may be due sooner than before
	}
	return nil
}

// moderate is moderateLocked of somebody who holds the life lock alone.
func (d *Device) moderate(c *CQ, on bool) {
	if on == c.moderated {
		return
	}
	d.lockQueues()
	defer d.unlockQueues()
	d.moderateLocked(c, on)
}

// moderateLocked puts a CQ into the lists of those with moderation, or takes it out. Each
// queue has it, since a completion of any queue may be what makes its event due. The
// caller holds the life lock and all progress locks.
func (d *Device) moderateLocked(c *CQ, on bool) {
	for _, q := range d.queues {
		switch {
		case on && !c.moderated:
			q.moderated = append(q.moderated, c)
		case !on && c.moderated:
			q.moderated = slices.DeleteFunc(q.moderated, func(m *CQ) bool { return m == c })
		}
	}
	c.moderated = on
}

// unmoderate makes the events of all CQs with moderation, and ends it,
// because the timers of the queue are not looked at any more.
func (q *queue) unmoderate() {
	for _, c := range q.moderated {
		c.core.SetModeration(0, 0)
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
