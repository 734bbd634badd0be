package queue

import "xroce/roce/verbs"

// A Batch adds completions to a CQ under one lock: what an acknowledge completes is often
// many. None of them can be polled before End. It is for queue pairs, as Push is; between
// the first Add and End no other function of the CQ may be called.
type Batch struct {
	c    *CQ
	tail uint32
	open bool // the lock is held
	fire bool // an event is due
	lost bool // the first completion was lost
}

// BatchMax is how many completions a batch may have: who polls waits for its end.
const BatchMax = 32

// NewBatch returns a batch for a CQ without anything in it. It takes no lock.
func NewBatch(c *CQ) Batch { return Batch{c: c} }

// Add is Push, at most BatchMax times.
func (b *Batch) Add(wc *verbs.Completion, solicited bool) bool {
	c := b.c
	if !b.open {
		c.mu.Lock()
		b.open, b.tail = true, c.tail.Load()
	}
	if b.tail-c.head.Load() > c.mask {
		b.lost = !c.overrun.Swap(true) || b.lost
		return false
	}
	c.ring[b.tail&c.mask] = *wc
	b.tail++
	if c.armed {
		c.tail.Store(b.tail)
		b.fire = c.arrived(wc, solicited) || b.fire
	}
	return true
}

// End lets the completions be polled, and calls the functions of the CQ that Push would have
// called. The batch is empty again.
func (b *Batch) End() {
	if !b.open {
		return
	}
	c := b.c
	if b.tail != c.tail.Load() {
		c.tail.Store(b.tail)
	}
	onError := c.onError
	c.mu.Unlock()
	fire, lost := b.fire, b.lost
	*b = Batch{c: c}
	if lost && onError != nil {
		onError()
	}
	c.raise(fire)
}
