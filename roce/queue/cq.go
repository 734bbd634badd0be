package queue

import (
	"fmt"
	"sync"
	"sync/atomic"

	"xroce/roce/verbs"
)

// MaxCQDepth is the largest number of entries of a CQ.
const MaxCQDepth = 1 << 22

// A CQ is a completion queue. Queue pairs add to it, applications take from
// it; everything is safe for concurrent use.
type CQ struct {
	// tail counts what was added, head what was taken. An idle poller reads
	// both without the lock.
	tail, head atomic.Uint32
	// hasInline says that completions have payloads that are not written yet. It is
	// written under mu.
	hasInline atomic.Bool

	mu      sync.Mutex
	ring    []verbs.Completion
	mask    uint32
	overrun atomic.Bool

	armed     bool
	solicited bool // armed for solicited and failed completions only
	moderation
	inline  inlineRing
	onEvent func()
	onError func()
}

// NewCQ returns a CQ with room for at least depth completions. The event
// function, which may be nil, is called once for each Arm, when a completion
// comes that fits it, or later if events are moderated. No lock of the CQ is
// held, but often the progress lock of a queue: it must not block.
func NewCQ(depth int, onEvent func()) (*CQ, error) {
	ring, err := newCQRing(depth)
	if err != nil {
		return nil, err
	}
	return &CQ{ring: ring, mask: uint32(len(ring) - 1), onEvent: onEvent}, nil
}

func newCQRing(depth int) ([]verbs.Completion, error) {
	if depth < 1 || depth > MaxCQDepth {
		return nil, fmt.Errorf("%w: CQ depth %d is not in 1..%d", verbs.ErrInvalid, depth,
			MaxCQDepth)
	}
	return make([]verbs.Completion, ringSize(depth)), nil
}

// Depth returns the number of completions that the CQ can hold.
func (c *CQ) Depth() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ring)
}

// OnError sets a function to call once, when the first completion is lost
// because the CQ is full. No lock of the CQ is held, but the progress lock of
// the queue whose QP lost it: the function must not block. Set it before queue
// pairs use the CQ.
func (c *CQ) OnError(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onError = f
}

// Poll moves completions to dst, the oldest first, and returns how many. It
// returns ErrOverrun when completions were lost because the CQ was full.
func (c *CQ) Poll(dst []verbs.Completion) (int, error) {
	if c.tail.Load() == c.head.Load() {
		if c.overrun.Load() {
			return 0, verbs.ErrOverrun
		}
		return 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	head, n := c.head.Load(), 0
	for avail := c.tail.Load() - head; n < len(dst) && uint32(n) < avail; n++ {
		dst[n] = c.ring[(head+uint32(n))&c.mask]
	}
	if c.inline.head != c.inline.tail {
		c.storeInline(dst[:n])
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

// full reports whether there is no room for another completion. The caller holds
// mu.
func (c *CQ) full() bool { return c.tail.Load()-c.head.Load() > c.mask }

// raise calls the event function without a lock: it may poll and arm.
func (c *CQ) raise(fire bool) {
	if fire && c.onEvent != nil {
		c.onEvent()
	}
}

// Purge takes out every completion of a QP, as its RESET requires. Inline payloads are
// written: they had arrived.
func (c *CQ) Purge(qpn uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storeAllInline()
	head, tail := c.head.Load(), c.tail.Load()
	kept := head
	for i := head; i != tail; i++ {
		wc := &c.ring[i&c.mask]
		if wc.QPN == qpn {
			continue
		}
		if kept != i { // most often there is nothing to take out
			c.ring[kept&c.mask] = *wc
		}
		kept++
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
