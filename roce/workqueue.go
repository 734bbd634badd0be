package roce

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Limits of a work queue.
const (
	MaxWR     = 1 << 15 // work requests in a queue
	MaxSGE    = 32      // pieces of one work request
	MaxInline = 1024    // bytes of inline data of one work request
)

// A workQueue is the ring between an application that posts and the queue that
// works: one side moves tail under mu, the other moves head alone. Each entry
// has room for maxSGE pieces and maxInline bytes beside it. The memory comes
// with the first post: a QP that was never used costs little.
type workQueue[E any] struct {
	head, tail atomic.Uint32

	mu        sync.Mutex
	ring      []E
	sges      []SGE
	inline    []byte
	mask      uint32
	maxSGE    uint8
	maxInline uint16
}

func (w *workQueue[E]) init(what string, depth, maxSGE, maxInline int) error {
	if depth < 1 || depth > MaxWR {
		return fmt.Errorf("%w: %s depth %d is not in 1..%d", ErrInvalid, what, depth, MaxWR)
	}
	if maxSGE < 1 || maxSGE > MaxSGE {
		return fmt.Errorf("%w: %d %s SGEs are not in 1..%d", ErrInvalid, maxSGE, what, MaxSGE)
	}
	w.mask, w.maxSGE, w.maxInline = uint32(ringSize(depth)-1), uint8(maxSGE), uint16(maxInline)
	return nil
}

// grow allocates the ring. The caller holds mu, and no entry was ever posted.
func (w *workQueue[E]) grow() {
	n := int(w.mask) + 1
	w.ring, w.sges = w.newRing(n)
	if w.maxInline > 0 {
		w.inline = make([]byte, n*int(w.maxInline))
	}
}

// at returns entry i, where i counts all entries ever posted.
func (w *workQueue[E]) at(i uint32) *E { return &w.ring[i&w.mask] }

// sgList returns the first n pieces of entry i.
func (w *workQueue[E]) sgList(i uint32, n int) []SGE {
	base := int(i&w.mask) * int(w.maxSGE)
	return w.sges[base : base+n]
}

// inlineData returns the first n bytes of inline data of entry i.
func (w *workQueue[E]) inlineData(i uint32, n uint32) []byte {
	base := int(i&w.mask) * int(w.maxInline)
	return w.inline[base : base+int(n)]
}

// checkSGList returns the length of a list in bytes.
func (w *workQueue[E]) checkSGList(list []SGE) (uint32, error) {
	if len(list) > int(w.maxSGE) {
		return 0, fmt.Errorf("%w: %d SGEs, the queue takes %d", ErrInvalid, len(list), w.maxSGE)
	}
	var total uint64
	for i := range list {
		total += uint64(list[i].Length)
	}
	if total > MaxMessage {
		return 0, fmt.Errorf("%w: %d bytes are more than a message of 2^31", ErrInvalid, total)
	}
	return uint32(total), nil
}

// push publishes an entry. The caller holds mu.
func (w *workQueue[E]) push(e *E, list []SGE, inline []byte) error {
	tail := w.tail.Load()
	if tail-w.head.Load() > w.mask {
		return ErrQueueFull
	}
	if w.ring == nil {
		w.grow()
	}
	*w.at(tail) = *e
	copy(w.sgList(tail, len(list)), list)
	if len(inline) > 0 {
		copy(w.inlineData(tail, uint32(len(inline))), inline)
	}
	w.tail.Store(tail + 1)
	return nil
}

// empty reports whether nothing is posted.
func (w *workQueue[E]) empty() bool { return w.head.Load() == w.tail.Load() }

// posted is the number of entries that are not complete.
func (w *workQueue[E]) posted() int { return int(w.tail.Load() - w.head.Load()) }

// clear forgets every entry.
func (w *workQueue[E]) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.head.Store(w.tail.Load())
}
