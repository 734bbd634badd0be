package engine

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"xroce/roce"
)

// This file is about links that are of no more use.

// fail ends the device because one of its queues has failed, the progress lock of which
// the caller holds. The other queues fail with it.
func (d *Device) fail(failing *queue, err error) {
	if !d.cause.CompareAndSwap(nil, &err) {
		return
	}
	close(d.failed)
	if errors.Is(err, ErrClosed) {
		return
	}
	d.raise(AsyncEvent{Type: roce.EventDeviceFatal})
	for _, q := range d.queues {
		if q != failing {
			// Not here: the holder of a progress lock may not take another.
			d.watching.Go(func() {
				q.lock()
				defer q.mu.Unlock()
				q.fail(err)
			})
		}
	}
}

// fail ends all QPs because the link is gone. The caller holds mu.
func (q *queue) fail(err error) {
	if q.err != nil {
		return
	}
	q.err = err
	q.dead.Store(true)
	q.device.fail(q, err)
	now := q.clock.Now()
	for _, qp := range q.device.qps.All {
		if qp.home() != q {
			continue
		}
		// From any state to ERR: this cannot be refused.
		_ = qp.core.Modify(now, &roce.Attr{State: roce.StateErr}, roce.AttrState)
	}
	q.unmoderate()
	q.link.Wake() // a caller that sleeps there is to hear of it
}

// errRemoved is why a device ends whose interface is gone: deleted, or in another network
// namespace.
func (d *Device) errRemoved() error {
	return fmt.Errorf("engine: interface %s was removed: %w", d.Name(), unix.ENODEV)
}

// followRemoval ends the device when its interface is removed. The link finds that out
// too, but only while somebody waits for it or sends.
func (d *Device) followRemoval(w RemovalWatcher) {
	select {
	case <-w.Removed():
	case <-d.failed:
		return
	}
	for _, q := range d.queues {
		q.lock()
		q.fail(d.errRemoved())
		q.mu.Unlock()
	}
}

// pause waits, or returns when the device ends.
func (d *Device) pause(t time.Duration) {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.failed:
	}
}
