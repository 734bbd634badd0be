package engine

import (
	"context"
	"fmt"
	"sync/atomic"

	"xroce/roce"
)

// A CQ is a completion queue of a device (struct ibv_cq). Its methods are safe for
// concurrent use.
type CQ struct {
	core    *roce.CQ
	device  *Device
	channel *CompChannel // nil when attached to none
	number  uint32       // in the registry
	ready   chan struct{}
	service atomic.Pointer[ServiceHandle] // which is told of completions, nil for none

	// Under the device's life lock:
	users     int // SRQs and QPs that complete to it, twice those that do for both queues
	closed    bool
	moderated bool // it is in the lists of the queues

	wake   contextWake  // for those who wait with a context
	asleep atomic.Int32 // those who sleep in the link until there are completions

	events *eventSource // of the device's asyncEvents

	// Under the channel's lock:
	due      int // events that were not taken
	taken    int // events that were not acknowledged
	nextDue  *CQ
	detached bool // no event comes any more
}

// A CQOption says more of a new CQ.
type CQOption func(*CQ)

// OnChannel attaches a CQ to a completion channel, which gets an event for each
// Arm that fires.
func OnChannel(c *CompChannel) CQOption { return func(cq *CQ) { cq.channel = c } }

// CreateCQ makes a CQ with room for at least depth completions, 1 to
// roce.MaxCQDepth (ibv_create_cq). A CQ that overflows loses completions: it is
// of no more use then, and its QPs go to ERR. EventCQErr and EventQPFatal tell.
func (d *Device) CreateCQ(depth int, options ...CQOption) (*CQ, error) {
	c := &CQ{device: d, ready: make(chan struct{}, 1)}
	c.wake.init(d)
	for _, option := range options {
		option(c)
	}
	core, err := roce.NewCQ(depth, c.notify)
	if err != nil {
		return nil, err
	}
	c.core = core
	core.OnError(func() { d.raise(AsyncEvent{Type: roce.EventCQErr, CQ: c}) })
	if c.channel != nil {
		if err := c.channel.attach(d); err != nil {
			return nil, err
		}
	}
	d.registry.add(resourceCQ, c, &c.number)
	return c, nil
}

// Close destroys the CQ (ibv_destroy_cq). It fails with ErrBusy while QPs use
// it, and waits until the events of its completion channel that were taken are
// acknowledged. It is idempotent.
func (c *CQ) Close() error {
	if closed, err := c.retire(); !closed {
		return err
	}
	c.device.registry.remove(resourceCQ, c, c.number)
	c.device.keys.WriteBack() // and forgets the CQ
	c.device.async.forget(c.events)
	c.wake.close()
	if c.channel != nil {
		c.channel.detach(c)
	}
	return nil
}

// retire closes the CQ to new QPs and reports whether it did, and why not if that
// is an error.
func (c *CQ) retire() (bool, error) {
	c.device.life.Lock()
	defer c.device.life.Unlock()
	if c.users > 0 {
		return false, fmt.Errorf("%w: queue pairs use the completion queue", ErrBusy)
	}
	was := c.closed
	c.closed = true
	c.device.moderate(c, false)
	return !was, nil
}

// AckEvents says that n events that the completion channel gave for this CQ
// will not be looked at any more (ibv_ack_cq_events). Close waits for that. It
// returns an error when fewer were taken.
func (c *CQ) AckEvents(n int) error {
	if c.channel == nil {
		return fmt.Errorf("%w: the CQ is on no completion channel", roce.ErrInvalid)
	}
	return c.channel.ack(c, n)
}

// notify runs with the progress lock held and must not block: one event that
// was not taken yet stands for all, but on a completion channel, which counts.
func (c *CQ) notify() {
	if c.channel != nil {
		c.channel.raise(c)
	}
	if h := c.service.Load(); h != nil {
		h.Wake()
		return
	}
	raise(c.ready)
	if c.asleep.Load() > 0 {
		c.device.wakeLinks()
	}
}

// pending implements awaited.
func (c *CQ) pending() bool { return c.Arm(false) }

// sleeper implements awaited.
func (c *CQ) sleeper() *atomic.Int32 { return &c.asleep }

// Resize makes room for at least depth completions (ibv_resize_cq), under
// traffic too. What was not polled yet stays, in order; the error is
// roce.ErrInvalid, and nothing changes, when that is more than depth.
func (c *CQ) Resize(depth int) error { return c.core.Resize(depth) }

// Depth returns the number of completions that the CQ can hold.
func (c *CQ) Depth() int { return c.core.Depth() }

// Poll moves completions to dst, the oldest first, and returns how many, 0 when
// there are none. An empty CQ makes progress first, beside a background loop if nobody else is
// at it just now: so hold no lock that a handler of frames takes. It returns roce.ErrOverrun
// when completions were lost because the CQ was full.
func (c *CQ) Poll(dst []roce.Completion) (int, error) {
	n, err := c.core.Poll(dst)
	if n != 0 || err != nil {
		return n, err
	}
	switch {
	case c.device.direct:
		c.device.Progress()
	case c.device.callersDrive():
		c.device.pollDrives()
	default:
		return 0, nil
	}
	return c.core.Poll(dst)
}

// Take is Poll that makes no progress: for the handlers of a Service, which the goroutine calls
// that stands by for the device. If they drove it, too, whoever polls would have to wait for
// them, for as long as the system leaves that goroutine without a processor.
func (c *CQ) Take(dst []roce.Completion) (int, error) { return c.core.Poll(dst) }

// Arm asks for one event on Events at the next completion, or at the next
// solicited or failed one. It returns true when the CQ is not empty: poll
// again, since no event may come for what is already there.
func (c *CQ) Arm(solicitedOnly bool) (pending bool) { return c.core.Arm(solicitedOnly) }

// Events receives a value for each Arm that fired.
func (c *CQ) Events() <-chan struct{} { return c.ready }

// Wait polls until there is at least one completion, the context ends, or the
// device fails. It sleeps in between, and drives the device meanwhile, beside a background
// loop if nobody else does. It arms the CQ, so one that is on a completion channel has events
// there for it.
func (c *CQ) Wait(ctx context.Context, dst []roce.Completion) (int, error) {
	if len(dst) == 0 {
		return 0, fmt.Errorf("%w: no room for completions", roce.ErrInvalid)
	}
	by := caller{queue: c.device.queues[0], of: c}
	if c.device.direct {
		c.device.services.standby.enter()
		defer c.device.services.leave()
		defer by.leave()
	}
	drives := c.device.callersDrive()
	if drives {
		defer by.leave()
	}
	if drives || c.device.direct {
		defer c.wake.after(ctx)()
	}
	for {
		n, err := c.take(dst)
		if n > 0 || err != nil {
			return n, err
		}
		if err := c.device.errToDrive(); err != nil {
			// What the failure flushed came after the poll above.
			if n, _ := c.core.Poll(dst); n > 0 {
				return n, nil
			}
			return 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if c.device.direct {
			c.device.driveOnce(ctx, c.pending, c.ready, nil)
			continue
		}
		if drives && by.drive(ctx) || c.Arm(false) {
			continue
		}
		if drives {
			by.park(ctx, c.ready, nil)
			continue
		}
		select {
		case <-c.ready:
		case <-c.device.failed:
		case <-ctx.Done():
		}
	}
}

// take is Poll that makes progress in direct mode alone.
func (c *CQ) take(dst []roce.Completion) (int, error) {
	if c.device.direct {
		return c.Poll(dst)
	}
	return c.core.Poll(dst)
}
