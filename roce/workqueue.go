package roce

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Limits of a work queue.
const (
	MaxWR  = 1 << 15 // work requests in a queue
	MaxSGE = 32      // pieces of one work request
)

// A workQueue is the ring between an application that posts and the queue that
// works: one side moves tail under mu, the other moves head alone. Each entry
// has room for maxSGE pieces beside it.
type workQueue[E any] struct {
	head, tail atomic.Uint32

	mu     sync.Mutex
	ring   []E
	sges   []SGE
	mask   uint32
	maxSGE int
}

func (w *workQueue[E]) init(what string, depth, maxSGE int) error {
	if depth < 1 || depth > MaxWR {
		return fmt.Errorf("%w: %s depth %d is not in 1..%d", ErrInvalid, what, depth, MaxWR)
	}
	if maxSGE < 1 || maxSGE > MaxSGE {
		return fmt.Errorf("%w: %d %s SGEs are not in 1..%d", ErrInvalid, maxSGE, what, MaxSGE)
	}
	n := ringSize(depth)
	w.ring, w.sges = make([]E, n), make([]SGE, n*maxSGE)
	w.mask, w.maxSGE = uint32(n-1), maxSGE
	return nil
}

// at returns entry i, where i counts all entries ever posted.
func (w *workQueue[E]) at(i uint32) *E { return &w.ring[i&w.mask] }

// sgList returns the first n pieces of entry i.
func (w *workQueue[E]) sgList(i uint32, n int) []SGE {
	base := int(i&w.mask) * w.maxSGE
	return w.sges[base : base+n]
}

// checkSGList returns the length of a list in bytes.
func (w *workQueue[E]) checkSGList(list []SGE) (uint32, error) {
	if len(list) > w.maxSGE {
		return 0, fmt.Errorf("%w: %d SGEs, the queue takes %d", ErrInvalid, len(list), w.maxSGE)
	}
	var total uint64
	for _, s := range list {
		total += uint64(s.Length)
	}
	if total > MaxMessage {
		return 0, fmt.Errorf("%w: %d bytes are more than a message of 2^31", ErrInvalid, total)
	}
	return uint32(total), nil
}

// push publishes an entry. The caller holds mu.
func (w *workQueue[E]) push(e E, list []SGE) error {
	tail := w.tail.Load()
	if tail-w.head.Load() > w.mask {
		return ErrQueueFull
	}
	*w.at(tail) = e
	copy(w.sgList(tail, len(list)), list)
	w.tail.Store(tail + 1)
	return nil
}

// clear forgets every entry.
func (w *workQueue[E]) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.head.Store(w.tail.Load())
}
