package queue

import (
	"fmt"

	"xroce/roce/verbs"
)

// This file changes how many completions a CQ can hold.

// Resize makes room for at least depth completions (ibv_resize_cq). What was not
// polled yet stays, in order; the error is ErrInvalid, and nothing changes, when
// that is more than depth. An overrun is not made good by it.
func (c *CQ) Resize(depth int) error {
	ring, err := newCQRing(depth)
	if err != nil {
		return err
	}
	fire, err := c.move(ring, depth)
	c.raise(fire)
	return err
}

// move puts a ring for depth completions in the place of the old one.
func (c *CQ) move(ring []verbs.Completion, depth int) (fire bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, tail := c.head.Load(), c.tail.Load()
	if n := tail - head; n > uint32(depth) {
		return false, fmt.Errorf("%w: CQ depth %d, but %d completions are in it",
			verbs.ErrInvalid, depth, n)
	}
	mask := uint32(len(ring) - 1)
	for i := head; i != tail; i++ {
		ring[i&mask] = c.ring[i&c.mask]
	}
	c.ring, c.mask = ring, mask
	return c.ripe(), nil
}
