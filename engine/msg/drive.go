package msg

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"xroce/roce"
)

// This file is about who takes completions while somebody waits for a message: whoever waits, for
// a while, spinning and then asleep in the link; after that the goroutine of the services.

// driverPause is how long that goroutine leaves completions to callers, after one of them has
// looked.
const driverPause = 500 * roce.Microsecond

// idleRounds is after how many looks for completions a caller looks at the clock: that costs more
// than they do.
const idleRounds = 16

// yieldRounds is after how many a caller lets other goroutines run.
const yieldRounds = 64

// Who waits on a device in direct mode sleeps in its link for some milliseconds before it leaves
// that to the goroutine of the services, which would have to wake it. It looks around now and then:
// what ends other than by a message, a context for one, ends it so much later at most.
const (
	napLength = roce.Millisecond
	napping   = 8 * napLength
)

// A drive is what is known of callers that take completions. While they do the CQ is not armed, so
// nobody is woken for what they see by themselves.
type drive struct {
	callers int       // that are at it
	unarmed bool      // the CQ is
	looked  roce.Time // when a caller looked last, or is to look
	napping bool      // a caller sleeps in the link from time to time
	asleep  bool      // it does now, or is about to

	// spinning is how many callers spin. They have the endpoint's lock nearly all the time, and do
	// what is due.
	spinning atomic.Int32
}

// due is when the goroutine of the services is to look whether callers still do.
func (d *drive) due() roce.Time { return d.looked + driverPause }

// A goal is what somebody who waits wants. The endpoint's lock is held when it is asked.
type goal interface {
	over() bool // reports whether there is nothing to wait for any more
}

// await waits until a message is complete, or for the end of the context, whose error it returns.
func (e *Endpoint) await(ctx context.Context, w *waiting) error {
	if !w.over() {
		e.look(ctx, w)
	}
	return w.sleep(ctx)
}

// look has whoever waits take completions itself for a while.
func (e *Endpoint) look(ctx context.Context, w goal) {
	if e.options.Spin <= 0 {
		return
	}
	e.memory.enter()
	defer e.memory.leave()
	e.mu.Lock()
	defer e.mu.Unlock()
	d := &e.drive
	d.callers++
	wake := !d.unarmed
	d.unarmed = true
	if wake {
		e.mu.Unlock()
		e.wakeAll() // they ask for our deadline
		e.mu.Lock()
	}
	e.spin(ctx, w)
	e.nap(ctx, w)
	d.callers--
	if e.err == nil && !w.over() {
		e.arm() // nobody looks any more
	}
}

// attend takes the lock for the goroutine of the services, or reports that it may come later:
// somebody who spins has it. To wait would have that one wake the goroutine at each unlock, and in
// the end wait for it.
func (e *Endpoint) attend() bool {
	if e.drive.spinning.Load() > 0 {
		return e.mu.TryLock()
	}
	e.mu.Lock()
	return true
}

// expire does what is due, for who spins. The caller holds mu.
func (e *Endpoint) expire(now roce.Time) {
	if at, ok := e.machine.NextDeadline(); ok && at <= now {
		e.machine.HandleDeadline(now)
		e.progress(now)
	}
}

// spin takes completions until something is over, the context ends, or it has taken too long. On
// a device in direct mode it moves packets meanwhile. The caller holds mu.
func (e *Endpoint) spin(ctx context.Context, w goal) {
	d := &e.drive
	d.spinning.Add(1)
	defer d.spinning.Add(-1)
	d.looked = e.dev.Now()
	end := d.looked + roce.Time(e.options.Spin)
	for round := 1; e.err == nil && !w.over(); round++ {
		if now, n := e.poke(); n > 0 {
			d.looked = now
			if e.progress(now); w.over() && !e.memory.asked() {
				return // who answers does so at once
			}
			e.expire(now)
		} else if round%idleRounds == 0 {
			if d.looked = e.dev.Now(); d.looked >= end || ctx.Err() != nil {
				return
			}
			e.expire(d.looked)
		}
		e.mu.Unlock()
		e.memory.serve()
		if round%yieldRounds == 0 {
			runtime.Gosched() // others may be what we wait for
		}
		e.mu.Lock()
	}
}

// poke is take for who waits: when nothing is complete it has devices in direct mode move packets.
func (e *Endpoint) poke() (now roce.Time, n int) {
	if now, n = e.take(0); n > 0 {
		return now, n
	}
	direct := false
	for _, from := range e.nics {
		if from.err == nil && from.dev.Direct() {
			direct = true
			_, at := from.dev.Round()
			now = max(now, at)
		}
	}
	if !direct {
		return 0, 0
	}
	return e.take(now)
}

// nap takes completions as spin does, asleep in the link in between. One caller does it: when that
// leaves, the others are served by the goroutine of the services. The caller holds mu.
func (e *Endpoint) nap(ctx context.Context, w goal) {
	d := &e.drive
	if d.napping || w.over() || len(e.nics) > 1 || !e.dev.Direct() {
		return
	}
	d.napping = true
	defer func() { d.napping = false }()
	now := e.dev.Now()
	for end := now + napping; e.err == nil && !w.over() && ctx.Err() == nil && now < end; {
		d.looked, d.asleep = now+napLength, true
		e.mu.Unlock()
		drove := e.dev.Drive(time.Duration(napLength))
		e.memory.serve()
		e.mu.Lock()
		d.asleep = false
		if !drove {
			return
		}
		now = e.dev.Now()
		for at, n := e.take(0); n > 0; at, n = e.take(0) {
			e.progress(at)
		}
	}
}

// arm leaves completions to the goroutine of the services, unless other callers take them. The
// caller holds mu.
func (e *Endpoint) arm() {
	if e.drive.callers > 0 || !e.drive.unarmed {
		return
	}
	e.drive.unarmed = false
	if e.poll() {
		e.wakeAll()
	}
	e.progress(e.dev.Now())
}

// relieve arms the CQ again when no caller has looked for a while. The caller holds mu.
func (e *Endpoint) relieve(now roce.Time) {
	d := &e.drive
	if !d.unarmed || now < d.due() {
		return
	}
	if d.callers > 0 { // who is at it was not scheduled
		d.looked = now
		e.take(0)
		return
	}
	e.arm()
}
