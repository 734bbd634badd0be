package engine

import (
	"context"
	"fmt"

	"xroce/roce"
)

// A CQ is a completion queue of a device.
type CQ struct {
	ring   *roce.CQ
	device *Device
	events chan struct{}
}

// CreateCQ makes a CQ with room for at least depth completions.
func (d *Device) CreateCQ(depth int) (*CQ, error) {
	c := &CQ{device: d, events: make(chan struct{}, 1)}
	ring, err := roce.NewCQ(depth, c.notify)
	if err != nil {
		return nil, err
	}
	c.ring = ring
	return c, nil
}

// notify runs with the progress lock held and must not block: one event that
// nobody took yet stands for all.
func (c *CQ) notify() {
	select {
	case c.events <- struct{}{}:
	default:
	}
}

// Depth returns the number of completions that the CQ can hold.
func (c *CQ) Depth() int { return c.ring.Depth() }

// Poll moves completions to dst, the oldest first, and returns how many, 0 when
// there are none. On a device in direct mode an empty CQ makes progress first.
// It returns roce.ErrOverrun when completions were lost because the CQ was full.
func (c *CQ) Poll(dst []roce.Completion) (int, error) {
	n, err := c.ring.Poll(dst)
	if n == 0 && err == nil && c.device.direct {
		c.device.Progress()
		return c.ring.Poll(dst)
	}
	return n, err
}

// Arm asks for one event on Events at the next completion, or at the next
// solicited or failed one. It returns true when the CQ is not empty: poll
// again, since no event may come for what is already there.
func (c *CQ) Arm(solicitedOnly bool) (pending bool) { return c.ring.Arm(solicitedOnly) }

// Events receives a value for each Arm that was answered.
func (c *CQ) Events() <-chan struct{} { return c.events }

// Wait polls until there is at least one completion, the context ends, or the
// device fails. It sleeps in between, on a device in direct mode by driving it.
func (c *CQ) Wait(ctx context.Context, dst []roce.Completion) (int, error) {
	if len(dst) == 0 {
		return 0, fmt.Errorf("%w: no room for completions", roce.ErrInvalid)
	}
	if c.device.direct {
		stop := context.AfterFunc(ctx, c.device.queue.link.Wake)
		defer stop()
	}
	for {
		n, err := c.Poll(dst)
		if n > 0 || err != nil {
			return n, err
		}
		if err := c.device.Err(); err != nil {
			// What the failure flushed came after the poll above.
			if n, _ := c.ring.Poll(dst); n > 0 {
				return n, nil
			}
			return 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if c.device.direct {
			c.device.driveOnce(ctx)
			continue
		}
		if c.Arm(false) {
			continue
		}
		select {
		case <-c.events:
		case <-c.device.failed:
		case <-ctx.Done():
		}
	}
}
