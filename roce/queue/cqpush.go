package queue

import "xroce/roce/verbs"

// This file adds completions.

// Push adds a completion and reports whether there was room. Without room the completion
// is lost, Poll returns ErrOverrun from then on, and the function of OnError is called for
// the first. A completion that is solicited or failed fits an Arm for those alone.
//
// It is for queue pairs, under the progress lock of their queue: the functions of the CQ
// are called from it.
func (c *CQ) Push(wc *verbs.Completion, solicited bool) bool {
	return c.PushInline(wc, solicited, nil)
}

// PushInline is Push of a completion that has an inline payload, nil for none. The payload
// is copied. It is written when the completion is polled, or before: see FlushInline. When
// its memory is not to be had any more by then, the completion says so instead.
func (c *CQ) PushInline(wc *verbs.Completion, solicited bool, in *InlinePayload) bool {
	c.mu.Lock()
	if c.full() {
		if in != nil {
			c.storeAllInline()
			in.store() // no completion tells of it, nor of a fault
		}
		lost := c.overrun.Swap(true)
		onError := c.onError
		c.mu.Unlock()
		if !lost && onError != nil {
			onError()
		}
		return false
	}
	if in != nil {
		c.keepInline(in, wc)
	}
	tail := c.tail.Load()
	c.ring[tail&c.mask] = *wc
	c.tail.Store(tail + 1)
	fire := c.armed && c.arrived(wc, solicited)
	c.mu.Unlock()
	c.raise(fire)
	return true
}
