package roce

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// MaxCQDepth is the largest number of entries of a CQ.
const MaxCQDepth = 1 << 22

// A CQ is a completion queue. Queue pairs add to it, applications take from
// it; both are safe for concurrent use.
type CQ struct {
	// tail counts what was added, head what was taken. An idle poller reads
	// both without the lock.
	tail, head atomic.Uint32

	mu      sync.Mutex
	ring    []Completion
	mask    uint32
	overrun atomic.Bool

	armed     bool
	solicited bool // armed for solicited and failed completions only
	onEvent   func()
}

// NewCQ returns a CQ with room for at least depth completions. The event
// function, which may be nil, is called once for each Arm, when a completion
// comes that fits it, with the progress lock held: it must not block.
func NewCQ(depth int, onEvent func()) (*CQ, error) {
	if depth < 1 || depth > MaxCQDepth {
		return nil, fmt.Errorf("%w: CQ depth %d is not in 1..%d", ErrInvalid, depth, MaxCQDepth)
	}
	n := ringSize(depth)
	return &CQ{ring: make([]Completion, n), mask: uint32(n - 1), onEvent: onEvent}, nil
}

// Depth returns the number of completions that the CQ can hold.
func (c *CQ) Depth() int { return len(c.ring) }

// Poll moves completions to dst, the oldest first, and returns how many. It
// returns ErrOverrun when completions were lost because the CQ was full.
func (c *CQ) Poll(dst []Completion) (int, error) {
	if c.tail.Load() == c.head.Load() {
		if c.overrun.Load() {
			return 0, ErrOverrun
		}
		return 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	head, n := c.head.Load(), 0
	for avail := c.tail.Load() - head; n < len(dst) && uint32(n) < avail; n++ {
		dst[n] = c.ring[(head+uint32(n))&c.mask]
	}
	c.head.Store(head + uint32(n))
	return n, nil
}

// Arm asks for one event at the next completion, or at the next solicited or
// failed one (ibv_req_notify_cq). It returns true when the CQ is not empty, so
// that the caller polls again instead of waiting for what already came.
func (c *CQ) Arm(solicitedOnly bool) (pending bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Arming for anything is not weakened by arming for solicited ones.
	c.solicited = solicitedOnly && (!c.armed || c.solicited)
	c.armed = true
	return c.tail.Load() != c.head.Load()
}

// push adds a completion and reports whether there was room.
func (c *CQ) push(wc *Completion, solicited bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := c.tail.Load()
	if tail-c.head.Load() > c.mask {
		c.overrun.Store(true)
		return false
	}
	c.ring[tail&c.mask] = *wc
	c.tail.Store(tail + 1)
	if c.armed && (!c.solicited || solicited || wc.Status != StatusSuccess) {
		c.armed = false
		if c.onEvent != nil {
			c.onEvent()
		}
	}
	return true
}

// purge takes out every completion of a QP, as its RESET requires.
func (c *CQ) purge(qpn uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, tail := c.head.Load(), c.tail.Load()
	kept := head
	for i := head; i != tail; i++ {
		if wc := c.ring[i&c.mask]; wc.QPN != qpn {
			c.ring[kept&c.mask] = wc
			kept++
		}
	}
	c.tail.Store(kept)
}

// ringSize is the power of two that holds n entries.
func ringSize(n int) int {
	size := 1
	for size < n {
		size *= 2
	}
	return size
}
