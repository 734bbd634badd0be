package engine

import (
	"context"

	"xroce/roce"
	"xroce/xsk"
)

// addQueue gives the device another link. Nobody drives the device yet.
func (d *Device) addQueue(link xsk.Link, mac [6]byte) {
	d.queues = append(d.queues, newQueue(d, len(d.queues), link, mac))
	if len(d.queues) == 1 {
		return // nobody hands anything over
	}
	if d.moves.wanted == nil {
		d.moves.wanted = make(chan wantedMove, 1)
		d.moves.deserted = make(chan *queue, 1)
	}
	for _, q := range d.queues {
		if q.inbox.slots == nil {
			// Whatever the MTU: that may be raised while the device is open.
			q.inbox.init(max(q.link.Info().MaxFrame, roce.LongestFrame))
			q.strays = new(strays)
		}
	}
}

// queueFor picks the queue of a new QP: that with the fewest, of those that have a link if any has.
// The caller holds life.
func (d *Device) queueFor() *queue {
	best := d.queues[0]
	for _, q := range d.queues[1:] {
		has, had := q.link.link.Load() != nil, best.link.link.Load() != nil
		if has && !had || has == had && q.members < best.members {
			best = q
		}
	}
	return best
}

// Progress makes one round of progress on each queue that nobody else drives just now,
// and reports whether there was anything to do. In a simulation it runs the services, too,
// and waits for who holds a queue, as the watch of the host does for a moment: there, no is
// taken for the end. It is safe beside the background driver.
func (d *Device) Progress() bool {
	worked, _ := d.Round()
	return worked
}

// Round is Progress that also returns when that was, by the clock of the device, if there was
// anything to do on a queue: to read the clock once more costs as much as some rounds.
func (d *Device) Round() (worked bool, at roce.Time) {
	if d.services.any.Load() {
		d.services.standby.notePoll()
	}
	for _, q := range d.queues {
		if d.services.inline {
			q.lock()
		} else if !q.mu.TryLock() {
			continue
		}
		if q.progress() {
			worked, at = true, max(at, q.at)
			q.wakeDriver()
		}
		q.mu.Unlock()
	}
	return d.services.progress() || worked, at
}

// NextDeadline returns when the device wants to make progress even if no packet
// comes, false for never. A simulator needs it; others have no use for it.
func (d *Device) NextDeadline() (at roce.Time, any bool) {
	at, any = d.services.nextDeadline()
	for _, q := range d.queues {
		q.lock()
		if next, ok := q.nextDeadline(); ok && (!any || next < at) {
			at, any = next, true
		}
		q.mu.Unlock()
	}
	return at, any
}

// driveOnce makes progress on the caller's thread and sleeps when there was nothing to
// do. It is for direct mode. A device with several queues has as many links and one
// thread here: that sleeps in the first, and not for long. Where another caller drives, this one
// waits for what it is here for, or for its turn: that one sleeps with the progress lock, and
// what it made may be ours.
func (d *Device) driveOnce(
	ctx context.Context, pending func() bool, ready, closed <-chan struct{},
) {
	t := &d.queues[0].turns
	if !t.take(true) {
		if !pending() {
			by := caller{queue: d.queues[0]}
			by.park(ctx, ready, closed)
		}
		return
	}
	defer t.release()
	d.services.dismiss()
	worked := false
	for _, q := range d.queues[1:] {
		q.mu.Lock()
		worked = q.progress() || worked
		q.mu.Unlock()
	}
	q := d.queues[0]
	q.lock() // who sleeps with it is in Drive
	defer q.mu.Unlock()
	q.sleeping.Add(1)
	defer q.sleeping.Add(-1)
	// A round of somebody else may have made what this one waits for since it looked.
	if q.progress() || worked || ctx.Err() != nil || q.callers.Load() != 0 || pending() {
		return
	}
	if err := q.link.Wait(d.driveTimeout(q, 0, false)); err != nil {
		q.linkError(err)
	}
}
