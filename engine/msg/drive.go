package msg

import (
	"context"
	"runtime"

	"xroce/roce"
)

// This file is about who takes completions while somebody waits for a message: whoever waits, for
// a while, then the goroutine of the services.

// driverPause is how long that goroutine leaves completions to callers, after one of them has
// looked.
const driverPause = 500 * roce.Microsecond

// idleRounds is after how many looks for completions a caller looks at the clock: that costs more
// than they do.
const idleRounds = 16

// yieldRounds is after how many a caller lets other goroutines run.
const yieldRounds = 64

// A drive is what is known of callers that take completions. While they do the CQ is not armed, so
// nobody is woken for what they see by themselves.
type drive struct {
	callers int       // that are at it
	unarmed bool      // the CQ is
	looked  roce.Time // when a caller looked last
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
		e.spin(ctx, w)
	}
	return w.sleep(ctx)
}

// spin takes completions until something is over, the context ends, or it has taken too long. On
// a device in direct mode it moves packets meanwhile.
func (e *Endpoint) spin(ctx context.Context, w goal) {
	if e.options.Spin <= 0 {
		return
	}
	d := &e.drive
	now := e.dev.Now()
	end := now + roce.Time(e.options.Spin)
	e.memory.enter()
	defer e.memory.leave()
	e.mu.Lock()
	d.callers++
	d.looked = now
	wake := !d.unarmed
	d.unarmed = true
	for round := 1; e.err == nil && !w.over(); round++ {
		if at, n := e.look(); n > 0 {
			d.looked = at
			e.progress(at)
		} else if round%idleRounds == 0 {
			if d.looked = e.dev.Now(); d.looked >= end || ctx.Err() != nil {
				break
			}
		}
		e.mu.Unlock()
		if wake { // it asks for our deadline
			wake = false
			e.wakeAll()
		}
		e.memory.serve()
		if round%yieldRounds == 0 {
			runtime.Gosched() // others may be what we wait for
		}
		e.mu.Lock()
	}
	d.callers--
	if e.err == nil && !w.over() {
		e.arm() // nobody looks any more
	}
	e.mu.Unlock()
}

// look is take for who waits: when nothing is complete it has devices in direct mode move packets.
func (e *Endpoint) look() (now roce.Time, n int) {
	if now, n = e.take(); n > 0 {
		return now, n
	}
	direct := false
	for _, from := range e.nics {
		if from.err == nil && from.dev.Direct() {
			direct = true
			from.dev.Progress()
		}
	}
	if !direct {
		return 0, 0
	}
	return e.take()
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
		e.take()
		return
	}
	e.arm()
}
