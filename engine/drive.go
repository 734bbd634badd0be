package engine

import (
	"fmt"
	"slices"
	"time"

	"xroce/roce"
)

// Drive makes a round of progress and, when there was nothing to do, sleeps in the link until
// something comes, until Rouse, or for limit at most. It is for who waits for completions in
// direct mode and takes them by itself: nobody else has to wake first. It does not sleep while
// one of the CQs that he names has completions: others may have driven the device, too, since he
// looked. It reports whether it could: not when somebody else is at it, nor on a device with a
// driver or several queues.
func (d *Device) Drive(limit time.Duration, cqs ...*CQ) bool {
	if !d.direct || d.services.inline || len(d.queues) > 1 {
		return false
	}
	d.services.standby.enter()
	defer d.services.leave()
	d.services.dismiss()
	q := d.queues[0]
	if !q.mu.TryLock() {
		return false
	}
	defer q.mu.Unlock()
	q.sleeping.Add(1)
	defer q.sleeping.Add(-1)
	// Completions are made under the progress lock alone.
	if q.progress() || q.err != nil || q.callers.Load() != 0 ||
		slices.ContainsFunc(cqs, func(c *CQ) bool { return c.core.Arm(false) }) {
		return true
	}
	if err := q.link.Wait(d.driveTimeout(q, q.now()+roce.Time(limit), true)); err != nil {
		q.linkError(err)
	}
	return true
}

// Rouse ends the Drive that sleeps now, or the next one. It never blocks.
func (d *Device) Rouse() { d.queues[0].link.Wake() }

// WakeOn has a Drive that sleeps end, too, when a descriptor can be read, from the next one on; -1
// is for none. One thread can then serve both. The descriptor must stay open until WakeOn(-1).
// The error wraps roce.ErrInvalid when Drive does nothing here, or the link cannot do it.
func (d *Device) WakeOn(fd int) error {
	link := d.queues[0].link
	if !link.watchesFDs() || !d.direct || len(d.queues) > 1 {
		return fmt.Errorf("%w: no descriptor of others can be watched here", roce.ErrInvalid)
	}
	link.WakeOn(fd)
	return nil
}

// Attend says that the caller drives the device from now on, by Drive or Progress, until he calls
// what it returns: the goroutine of the services leaves it to him, which it does otherwise only
// while somebody is in Drive, and for a millisecond after. It is for direct mode, and does nothing
// elsewhere.
func (d *Device) Attend() (leave func()) {
	d.services.standby.enter()
	return d.services.leave
}
