package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"xroce/roce"
)

// A standby is what the goroutine of the services knows of the callers that drive a
// device in direct mode. While one polls or waits the goroutine does not touch the device.
// Else it drives the device itself, by sleeping in the link until a frame or a deadline
// comes, so that management datagrams are handled without polling.
type standby struct {
	polled   atomic.Bool  // somebody made progress since the goroutine looked
	waiting  atomic.Int32 // those who drive the device in CQ.Wait or CompChannel.GetEvent
	yielding atomic.Bool  // the goroutine sleeps until they have left
	asleep   atomic.Bool  // the goroutine is in, or about to enter, link.Wait
	link     sync.Mutex   // which it holds meanwhile
}

// standbyPause is how long the goroutine leaves the device to a caller that polls, before
// it looks whether that still does.
const standbyPause = roce.Millisecond

// enter counts a caller that waits in direct mode.
func (b *standby) enter() { b.waiting.Add(1) }

// leave ends enter. The goroutine drives again unless another wait follows.
func (s *services) leave() {
	b := &s.standby
	b.polled.Store(true)
	if b.waiting.Add(-1) == 0 && b.yielding.Load() {
		s.kick()
	}
}

// notePoll notes that a caller makes progress in direct mode.
func (b *standby) notePoll() {
	if !b.polled.Load() {
		b.polled.Store(true)
	}
}

// dismiss returns when the goroutine is not in the link, for a caller that is about to sleep
// there: between enter and leave it does not go there again.
func (s *services) dismiss() {
	b := &s.standby
	if !b.asleep.Load() {
		return
	}
	s.device.queues[0].link.Wake()
	b.link.Lock() // it has left when it gives this back
	defer b.link.Unlock()
}

// standBy makes a round of progress and sleeps in the link if there was nothing to do,
// until the next call of a service is due at most. It reports whether it could: somebody
// else may be at it just now.
func (d *Device) standBy(stop <-chan struct{}, next roce.Time, any bool) bool {
	worked := false
	for _, q := range d.queues[1:] {
		if q.mu.TryLock() {
			worked = q.progress() || worked
			q.mu.Unlock()
		}
	}
	b, q := &d.services.standby, d.queues[0]
	b.link.Lock()
	defer b.link.Unlock()
	if b.polled.Load() || !q.mu.TryLock() {
		return false
	}
	// Announce the sleep first and look for reasons not to after: whoever comes later
	// sees the announcement and wakes the link.
	b.asleep.Store(true)
	defer b.asleep.Store(false)
	q.sleeping.Add(1)
	defer q.sleeping.Add(-1)
	q.idle |= idleRounds - 1 // a deadline may be why it was woken
	worked = q.progress() || worked
	timeout := d.driveTimeout(q, next, any)
	q.mu.Unlock()
	if worked || b.polled.Load() || b.waiting.Load() > 0 || d.services.called(stop) {
		return true
	}
	if err := q.link.Wait(timeout); err != nil {
		q.mu.Lock()
		q.linkError(err)
		q.mu.Unlock()
	}
	return true
}

// called reports whether the goroutine was kicked or is to end.
func (s *services) called(stop <-chan struct{}) bool {
	select {
	case <-s.kicked:
	case <-stop:
	case <-s.device.failed:
	default:
		return false
	}
	return true
}

// driveTimeout is how long somebody may sleep in the link of a queue, in direct mode: until
// its next deadline, or until next if that is sooner. The caller holds the progress lock.
func (d *Device) driveTimeout(q *queue, next roce.Time, any bool) time.Duration {
	deadline, armed := q.nextDeadline()
	if any && (!armed || next < deadline) {
		deadline, armed = next, true
	}
	again := q.lookAgain()
	if len(d.queues) > 1 {
		again = blockedSleep
	}
	return sleepTime(q.now(), deadline, armed, again)
}

// kick has the goroutine look again. It never blocks.
func (s *services) kick() {
	select {
	case s.kicked <- struct{}{}:
	default:
	}
	if s.standby.asleep.Load() {
		s.device.queues[0].link.Wake()
	}
}
