package engine

import (
	"runtime"
	"sync"
	"time"

	"xroce/engine/internal/affinity"
	"xroce/roce"
)

// A driver is the background loop of a queue: the goroutine that holds the
// progress lock by default.
type driver struct {
	queue   *queue
	spin    roce.Time
	busy    bool
	cpu     int // -1 for any
	stop    chan struct{}
	stopped sync.WaitGroup
}

// startDriver starts the driver of the queue with this number.
func startDriver(q *queue, number int, o *Options) *driver {
	cpu := -1
	if len(o.CPUs) > 0 {
		cpu = o.CPUs[number%len(o.CPUs)]
	}
	d := &driver{
		queue: q, spin: roce.Time(o.Spin), busy: o.Busy, cpu: cpu,
		stop: make(chan struct{}),
	}
	d.stopped.Go(d.run)
	return d
}

// close ends the loop and returns when it is over.
func (d *driver) close() {
	close(d.stop)
	d.queue.link.Wake()
	d.stopped.Wait()
}

// run drives the queue on a thread of its own until close.
func (d *driver) run() {
	runtime.LockOSThread()
	// Without UnlockOSThread the thread ends with the goroutine, and its
	// affinity with it.
	if d.cpu >= 0 {
		affinity.Pin(d.cpu)
	}
	q := d.queue
	idleSince := q.clock.Now()
	absent := absence{queue: q, stop: d.stop, timer: time.NewTimer(0), since: idleSince}
	defer absent.timer.Stop()
	handed := false
	for {
		select {
		case <-d.stop:
			return
		default:
		}
		if q.dead.Load() {
			return
		}
		q.mu.Lock()
		worked := q.progress()
		deadline, armed := q.nextDeadline()
		again, rests := q.lookAgain(), q.rests()
		now := q.now()
		q.noteSleep(deadline, armed)
		q.mu.Unlock()
		q.turns.posts.Store(0)
		if worked {
			idleSince = now
		}
		switch {
		case handed && !worked || absent.due(now):
			absent.leave()
			idleSince = q.clock.Now()
			handed = false
		case worked:
		case rests || !d.busy && now-idleSince >= d.spin:
			handed = d.sleep(sleepTime(now, deadline, armed, again))
		}
	}
}

// sleepTime is how long the driver may sleep: until the next deadline, and no longer than again
// unless that is negative.
func sleepTime(now, deadline roce.Time, armed bool, again time.Duration) time.Duration {
	timeout := time.Duration(-1)
	if armed {
		timeout = max(0, time.Duration(deadline-now))
	}
	if again >= 0 && (timeout < 0 || timeout > again) {
		timeout = again
	}
	return timeout
}

// blockedSleep is how soon to try again when the device takes no more packets.
const blockedSleep = 100 * time.Microsecond

// sleep waits for a frame, a doorbell or a deadline. It reports whether a caller will drive.
func (d *driver) sleep(timeout time.Duration) (handed bool) {
	q := d.queue
	if !q.turns.take(false) {
		return false // a caller drives
	}
	err := d.wait(timeout)
	// Who drives next may be in the link by the time that this takes the lock.
	handed = q.turns.release()
	if err != nil {
		q.mu.Lock()
		q.linkError(err)
		q.mu.Unlock()
	}
	return handed
}

// wait is sleep for who has the turn.
func (d *driver) wait(timeout time.Duration) error {
	q := d.queue
	// Announce the sleep first and look for doorbells and forwarded frames after:
	// whoever comes later sees the announcement and wakes the link.
	q.sleeping.Add(1)
	defer q.sleeping.Add(-1)
	select {
	case <-d.stop: // a caller may have slept through the Wake of close
		return nil
	default:
	}
	if q.doorbells.count.Load() != 0 || !q.inbox.empty() {
		return nil
	}
	return q.link.Wait(timeout)
}
