package queue

import (
	"math"
	"sync/atomic"

	"xroce/roce/clock"
	"xroce/roce/verbs"
)

// moderation is what holds back the event of a CQ that is armed for any
// completion, so that one event stands for several.
type moderation struct {
	count  uint32     // the event comes after that many completions
	period clock.Time // or that long after the first of them; 0 when off

	waiting uint32     // completions that came since the CQ was armed
	first   clock.Time // when the first of them came
	// due is when the event is due if no more comes, 0 when none is held back.
	due atomic.Int64
}

// SetModeration lets an armed CQ raise its event after count completions, or
// when period has gone by since the first one that came after arming, whichever
// is sooner (ibv_modify_cq). The event also comes when the CQ is full. A count of
// 0 or 1, or a period of 0, ends moderation, and raises an event that was held
// back. A CQ armed for solicited completions only is not held back.
//
// The caller then has to call HandleDeadline when NextDeadline says so.
func (c *CQ) SetModeration(count uint16, period clock.Time) {
	c.mu.Lock()
	c.count, c.period = uint32(count), period
	if count <= 1 || period <= 0 {
		c.count, c.period = 1, 0
	}
	fire := c.ripe()
	c.mu.Unlock()
	c.raise(fire)
}

// NextDeadline returns when HandleDeadline wants to be called, false for never.
// It takes no lock. A completion that is added may bring it forward.
func (c *CQ) NextDeadline() (clock.Time, bool) {
	due := c.due.Load()
	return clock.Time(due), due != 0
}

// HandleDeadline raises the event that is due. Calling it early does nothing.
func (c *CQ) HandleDeadline(now clock.Time) {
	if due, ok := c.NextDeadline(); !ok || now < due {
		return
	}
	c.mu.Lock()
	due, ok := c.NextDeadline()
	fire := ok && now >= due
	if fire {
		c.disarm()
	}
	c.mu.Unlock()
	c.raise(fire)
}

// arrived counts a completion that was just added to an armed CQ and tells
// whether to raise the event; then the CQ is not armed any more. The caller holds
// mu.
func (c *CQ) arrived(wc *verbs.Completion, solicited bool) bool {
	if c.solicited {
		if !solicited && wc.Status == verbs.StatusSuccess {
			return false
		}
		c.disarm()
		return true
	}
	if c.waiting == 0 {
		c.first = wc.Time
	}
	c.waiting++
	return c.ripe()
}

// ripe reports whether an event that is held back must be raised without waiting
// for its time; then the CQ is not armed any more. The caller holds mu.
func (c *CQ) ripe() bool {
	if c.waiting == 0 {
		return false
	}
	if c.period == 0 || c.waiting >= c.count || c.full() {
		c.disarm()
		return true
	}
	due := c.first + c.period
	if due < c.first {
		due = math.MaxInt64
	}
	c.due.Store(int64(due))
	return false
}

// disarm forgets that the CQ is armed. The caller holds mu.
func (c *CQ) disarm() {
	c.armed, c.waiting = false, 0
	c.due.Store(0)
}
