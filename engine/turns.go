package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"xroce/roce"
)

// Turns say who drives a queue in the background mode: its driver, or the callers that wait
// for completions, or poll for them. A caller that drives sees what came without anybody
// having to wake it, so while callers do, the driver is away. It comes back leaveTime after the
// last of them had left, by a timer: it is not told, because they mostly come again.
//
// Who sleeps in the link has the turn, so one at a time does. A caller keeps it for as long as
// it waits, the driver only while it sleeps.
type turns struct {
	rounds   atomic.Uint32 // made by callers, of use as a difference only
	posts    atomic.Int32  // that left with the caller, since somebody else sent
	away     atomic.Bool   // the driver is, and a value in back has it look
	yielding atomic.Bool   // it is away until the caller who drives has left
	driving  atomic.Bool   // a caller has the turn
	back     chan struct{} // has room for one

	mu     sync.Mutex
	taken  bool
	parked int           // callers who wait until the turn is free
	handed chan struct{} // has a value for one of them; room for one
	closed atomic.Bool   // no caller gets the turn any more; written with mu
	free   sync.Cond     // taken has become false
}

// How the driver leaves a queue to callers.
const (
	// leaveTime is for how long the driver is away, unless there is a deadline before that.
	leaveTime = roce.Millisecond
	// manyRounds is from how many rounds of callers in that time on it stays away. Who polls
	// once in a while does not keep it away.
	manyRounds = 16
)

func (t *turns) init() {
	t.back, t.handed = make(chan struct{}, 1), make(chan struct{}, 1)
	t.free.L = &t.mu
}

// take gives the turn to the driver, or to a caller, if nobody has it.
func (t *turns) take(caller bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken || caller && t.closed.Load() {
		return false
	}
	t.taken = true
	t.driving.Store(caller)
	return true
}

// release gives the turn back, and reports whether it handed it on to a caller.
func (t *turns) release() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
	t.driving.Store(false)
	t.free.Broadcast()
	if t.yielding.Load() {
		raise(t.back)
	}
	return t.handOn()
}

// handOn has a caller who is parked look whether the turn is free, if there is one, and reports
// that. The caller holds mu.
func (t *turns) handOn() bool {
	if t.parked == 0 || t.taken {
		return false
	}
	raise(t.handed)
	return true
}

// park counts a caller who is about to wait for the turn, unless it is free just now.
func (t *turns) park() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.taken && !t.closed.Load() {
		return false
	}
	t.parked++
	return true
}

// unpark ends park.
func (t *turns) unpark() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.parked--
}

// pass hands the turn on to another caller, for one that was woken for it and does not want
// it any more.
func (t *turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handOn()
}

// close keeps callers from taking the turn and waits until nobody has it.
func (t *turns) close(q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed.Store(true)
	q.link.Wake()
	for t.taken {
		t.free.Wait()
	}
}

// raise puts a value into a channel that has room for one. It does not block.
func raise(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// An absence is what a driver remembers to know whether it may be away.
type absence struct {
	queue *queue
	stop  <-chan struct{}
	timer *time.Timer
	seen  uint32    // rounds of callers, when it looked last
	since roce.Time // when that was
}

// lookTime is how long a driver that spins leaves between two looks at what callers do.
const lookTime = 50 * roce.Microsecond

// due reports whether the driver may go away now: a caller has the turn, or callers made many
// rounds since the last look.
func (a *absence) due(now roce.Time) bool {
	t := &a.queue.turns
	if t.driving.Load() {
		return true
	}
	if now-a.since < lookTime {
		return false
	}
	rounds := t.rounds.Load()
	many := rounds-a.seen >= manyRounds
	a.seen, a.since = rounds, now
	return many
}

// leave has the driver away until callers do not drive any more, or until there is a doorbell
// that none of them will see.
func (a *absence) leave() {
	t := &a.queue.turns
	t.away.Store(true)
	defer t.away.Store(false)
	for yielded := false; ; yielded = a.yield() {
		seen := t.rounds.Load()
		passed := a.nap()
		a.seen = t.rounds.Load()
		switch {
		case !passed:
			return
		case !t.driving.Load() && !yielded && a.seen-seen < manyRounds:
			return
		}
	}
}

// nap waits for leaveTime, and reports whether that has passed.
func (a *absence) nap() bool {
	q := a.queue
	if q.doorbells.count.Load() != 0 && !q.turns.driving.Load() {
		return false
	}
	a.timer.Reset(time.Duration(leaveTime))
	select {
	case <-a.timer.C:
		return true
	case <-q.turns.back:
	case <-a.stop:
	case <-q.device.failed:
	}
	return false
}

// yield waits until the caller who drives has left, if there is one, and reports that. So no
// timer runs while somebody waits for long.
func (a *absence) yield() bool {
	t := &a.queue.turns
	t.yielding.Store(true)
	defer t.yielding.Store(false)
	if !t.driving.Load() {
		return false
	}
	select {
	case <-t.back:
	case <-a.stop:
	case <-a.queue.device.failed:
	}
	return true
}
