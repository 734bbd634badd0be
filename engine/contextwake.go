package engine

import (
	"context"
	"sync"
)

// A contextWake has the links of a device woken when the context ends of somebody who may sleep
// there. It keeps the registration for the next wait, which mostly has the same context: then
// nothing is allocated.
type contextWake struct {
	device *Device
	ended  func() // done, made once

	mu      sync.Mutex
	ctx     context.Context
	stop    func() bool
	waiters int
}

func (w *contextWake) init(d *Device) { w.device, w.ended = d, w.done }

// after begins a wait, and returns what ends it.
func (w *contextWake) after(ctx context.Context) (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx != ctx && w.waiters > 0 {
		stop := context.AfterFunc(ctx, w.device.wakeLinks)
		return func() { stop() }
	}
	if w.ctx != ctx {
		w.forget()
		w.ctx, w.stop = ctx, context.AfterFunc(ctx, w.device.wakeLinks)
	}
	w.waiters++
	return w.ended
}

func (w *contextWake) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters--
}

// close ends the registration that is kept.
func (w *contextWake) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget()
}

// forget is close for who holds mu.
func (w *contextWake) forget() {
	if w.stop != nil {
		w.stop()
		w.ctx, w.stop = nil, nil
	}
}
