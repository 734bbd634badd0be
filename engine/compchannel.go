package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"xroce/engine/internal/notify"
	"xroce/roce"
)

// ErrBusy says that something cannot be closed, or changed, because others use it.
var ErrBusy = errors.New("engine: still in use")

// A CompChannel tells which of its CQs have something to poll (struct
// ibv_comp_channel). A CQ adds an event each time that an Arm fires:
//
//	cq.Arm(false)
//	for {
//		cq, err := channel.GetEvent(ctx)
//		err = cq.AckEvents(1)
//		cq.Arm(false)
//		// Now poll until there is nothing: what comes later makes an event.
//	}
//
// Methods are safe for concurrent use.
type CompChannel struct {
	device *Device
	done   chan struct{} // closed with the channel

	mu      sync.Mutex
	acked   sync.Cond // an event was acknowledged, or the channel closed
	first   *CQ       // those with events, in the order in which they are taken
	last    *CQ
	signal  notify.Signal
	cqs     int // attached
	closed  bool
	adapter chan *CQ
	running sync.WaitGroup
	asleep  atomic.Int32 // those who sleep in the link until there are events
	wake    contextWake  // for those who wait with a context
}

// CreateCompChannel makes a completion channel, to be given to CreateCQ.
func (d *Device) CreateCompChannel() (*CompChannel, error) {
	c := &CompChannel{device: d, done: make(chan struct{}), signal: notify.New()}
	c.acked.L = &c.mu
	c.wake.init(d)
	if err := c.signal.Open(0); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	if err := d.addChannel(c); err != nil {
		return nil, errors.Join(err, c.signal.Close())
	}
	return c, nil
}

// FD returns a descriptor that polls as readable as long as there are events, -1 on
// a system that has no eventfd. It is for poll(2) only: the channel reads it, and
// closes it.
func (c *CompChannel) FD() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.signal.FD()
}

// PollEvent takes an event if there is one and returns its CQ, nil when there
// is none. Each must be acknowledged by AckEvents of the CQ.
func (c *CompChannel) PollEvent() *CQ {
	c.mu.Lock()
	defer c.mu.Unlock()
	cq := c.first
	if cq == nil {
		return nil
	}
	c.unlink(cq)
	cq.taken++
	if cq.due--; cq.due > 0 {
		c.link(cq)
	}
	c.signal.Lower(1)
	if c.first != nil {
		c.signal.Wake()
	}
	return cq
}

// GetEvent waits for an event and returns its CQ (ibv_get_cq_event), which must
// be acknowledged by AckEvents. It drives the device, beside a background loop if nobody else
// does.
func (c *CompChannel) GetEvent(ctx context.Context) (*CQ, error) {
	by := caller{queue: c.device.queues[0], of: c}
	drives := c.device.callersDrive()
	if drives || c.device.direct {
		defer c.wake.after(ctx)()
	}
	switch {
	case drives:
		defer by.leave()
	case c.device.direct:
		c.device.services.standby.enter()
		defer c.device.services.leave()
		defer by.leave()
	}
	for {
		// What failed first may have left events, so its error is read first.
		err := errors.Join(c.err(), ctx.Err())
		if cq := c.PollEvent(); cq != nil {
			return cq, nil
		}
		if err != nil {
			return nil, err
		}
		if c.device.direct {
			c.device.driveOnce(ctx, c.pending, c.signal.Ready(), c.done)
			continue
		}
		if drives {
			if !by.drive(ctx) {
				by.park(ctx, c.signal.Ready(), c.done)
			}
			continue
		}
		select {
		case <-c.signal.Ready():
		case <-c.done:
		case <-c.device.failed:
		case <-ctx.Done():
		}
	}
}

// err says why no more events come, nil while they may.
func (c *CompChannel) err() error {
	select {
	case <-c.done:
		return ErrClosed
	case <-c.device.failed:
		return c.device.Err()
	default:
		return nil
	}
}

// Events returns a channel of the CQs that have events. From the first call on a
// goroutine takes the events and acknowledges them itself, so it may hold a CQ
// that is closed before it is received. Close closes it.
func (c *CompChannel) Events() <-chan *CQ {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.adapter == nil {
		c.adapter = make(chan *CQ)
		if c.closed {
			close(c.adapter)
		} else {
			c.running.Go(c.run)
		}
	}
	return c.adapter
}

// run moves events to the channel of Events.
func (c *CompChannel) run() {
	defer close(c.adapter)
	for {
		cq := c.PollEvent()
		if cq == nil {
			select {
			case <-c.signal.Ready():
				continue
			case <-c.done:
				return
			}
		}
		// It was taken just now, so this cannot be refused.
		_ = c.ack(cq, 1)
		select {
		case c.adapter <- cq:
		case <-c.done:
			return
		}
	}
}

// Close gives the descriptor back. It fails with ErrBusy while CQs are attached.
// It is idempotent, and closing the device does it too.
func (c *CompChannel) Close() error {
	c.mu.Lock()
	n := c.cqs
	c.mu.Unlock()
	if n > 0 {
		return fmt.Errorf("%w: %d completion queues are attached to the channel", ErrBusy, n)
	}
	return c.close()
}

func (c *CompChannel) close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	close(c.done)
	c.acked.Broadcast()
	err := c.signal.Close()
	c.mu.Unlock()
	if c.asleep.Load() > 0 {
		c.device.wakeLinks()
	}
	c.running.Wait()
	c.wake.close()
	c.device.removeChannel(c)
	return err
}

// attach counts a CQ in.
func (c *CompChannel) attach(d *Device) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.device != d || c.closed {
		return fmt.Errorf("%w: the completion channel is closed, or of another device",
			roce.ErrInvalid)
	}
	c.cqs++
	return nil
}

// detach drops the events of a CQ, waits until those that were taken are
// acknowledged, and counts the CQ out.
func (c *CompChannel) detach(cq *CQ) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cq.detached = true
	if cq.due > 0 {
		c.unlink(cq)
		c.signal.Lower(cq.due)
		cq.due = 0
	}
	for cq.taken > 0 && !c.closed {
		c.acked.Wait()
	}
	c.cqs--
}

// ack is CQ.AckEvents.
func (c *CompChannel) ack(cq *CQ, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < 0 || n > cq.taken {
		return fmt.Errorf("%w: %d events acknowledged of %d", roce.ErrInvalid, n, cq.taken)
	}
	cq.taken -= n
	c.acked.Broadcast()
	return nil
}

// raise adds an event of a CQ. It runs with the progress lock held and does not
// block.
func (c *CompChannel) raise(cq *CQ) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || cq.detached {
		return
	}
	if cq.due++; cq.due == 1 {
		c.link(cq)
	}
	c.signal.Raise()
	if c.asleep.Load() > 0 {
		c.device.wakeLinks()
	}
}

// pending implements awaited.
func (c *CompChannel) pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first != nil || c.closed
}

// sleeper implements awaited.
func (c *CompChannel) sleeper() *atomic.Int32 { return &c.asleep }

// link puts a CQ with events at the end.
func (c *CompChannel) link(cq *CQ) {
	if cq.nextDue = nil; c.first == nil {
		c.first = cq
	} else {
		c.last.nextDue = cq
	}
	c.last = cq
}

// unlink takes out a CQ that is in.
func (c *CompChannel) unlink(cq *CQ) {
	var before *CQ
	for at := c.first; at != cq; at = at.nextDue {
		before = at
	}
	if before == nil {
		c.first = cq.nextDue
	} else {
		before.nextDue = cq.nextDue
	}
	if c.last == cq {
		c.last = before
	}
	cq.nextDue = nil
}
