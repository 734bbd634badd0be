package engine

import (
	"context"
	"sync/atomic"
	"time"

	"xroce/roce"
)

// This file lets callers drive a queue in the background mode; see turns.

// callersDrive reports whether callers drive beside the driver. A device with several queues
// has a driver for each and callers have one thread; a processor for the driver alone is there
// to be used by it; and a simulation drives itself.
func (d *Device) callersDrive() bool {
	return !d.direct && len(d.queues) == 1 && d.queues[0].spins && len(d.options.CPUs) == 0
}

// An awaited is what a caller waits for: completions, or events.
type awaited interface {
	// pending reports whether there is something to take. If not, what comes from now on
	// ends a sleep in the link, or makes ready have a value.
	pending() bool
	// sleeper says that somebody sleeps in the link for it.
	sleeper() *atomic.Int32
}

// A caller waits for something and drives the queue meanwhile if nobody else does.
type caller struct {
	queue     *queue
	of        awaited
	drives    bool // it has the turn
	idleSince roce.Time
}

// leave ends the wait.
func (c *caller) leave() {
	t := &c.queue.turns
	switch {
	case c.drives:
		c.drives = false
		t.release()
	default:
		t.pass() // it may have been woken to drive
	}
}

// drive makes a round and sleeps in the link when nothing has come for as long as the driver
// would spin. It reports whether it could: not when somebody else sleeps there.
func (c *caller) drive(ctx context.Context) bool {
	q := c.queue
	if !c.drives {
		if !q.turns.take(true) {
			return false
		}
		c.drives, c.idleSince = true, q.clock.Now()
	}
	q.mu.Lock()
	worked := q.callerRound()
	deadline, armed := q.nextDeadline()
	again, rests := q.lookAgain(), q.rests()
	now := q.now()
	q.noteSleep(deadline, armed)
	q.mu.Unlock()
	o := &q.device.options
	switch {
	case worked:
		c.idleSince = now
	case rests || !o.Busy && now-c.idleSince >= roce.Time(o.Spin):
		c.sleep(ctx, sleepTime(now, deadline, armed, again))
	}
	if q.turns.closed.Load() {
		c.leave()
		return false
	}
	return true
}

// sleep waits in the link for a frame, a doorbell, a deadline, or for what the caller waits
// for, when somebody else handles the frame that brings it.
func (c *caller) sleep(ctx context.Context, timeout time.Duration) {
	q := c.queue
	c.of.sleeper().Add(1)
	defer c.of.sleeper().Add(-1)
	q.sleeping.Add(1)
	defer q.sleeping.Add(-1)
	// All is announced: whatever comes from here on wakes the link.
	if c.of.pending() || q.doorbells.count.Load() != 0 || !q.inbox.empty() ||
		q.dead.Load() || ctx.Err() != nil || q.turns.closed.Load() {
		return
	}
	err := q.link.Wait(timeout)
	if err == nil {
		return
	}
	c.leave() // before the lock, with which Close waits for the turn
	q.mu.Lock()
	q.linkError(err)
	q.mu.Unlock()
}

// park waits until what the caller waits for may be there, or until it may drive.
// The channels are of what the caller waits for: that it may be there, and that it is closed.
func (c *caller) park(ctx context.Context, ready, closed <-chan struct{}) {
	t, d := &c.queue.turns, c.queue.device
	if !t.park() {
		return
	}
	defer t.unpark()
	select {
	case <-ready:
	case <-closed:
	case <-t.handed:
	case <-d.failed:
	case <-ctx.Done():
	}
}

// callerRound is progress for a caller that waits or polls. The caller holds mu.
func (q *queue) callerRound() bool {
	t := &q.turns
	t.rounds.Add(1)
	t.posts.Store(0)
	q.reply.awaited = t.away.Load()
	worked := q.progress()
	q.reply.awaited = false
	if worked && !t.away.Load() {
		q.wake() // the driver may sleep until a deadline that was the next before
	}
	return worked
}

// pollDrives makes a round for a caller that polls, if nobody else is at it.
func (d *Device) pollDrives() {
	q := d.queues[0]
	if q.mu.TryLock() {
		q.callerRound()
		q.mu.Unlock()
	} else {
		q.turns.rounds.Add(1) // it wants to, and the driver is to go
	}
	if q.doorbells.count.Load() != 0 {
		q.rouse()
	}
}
