package queue

import (
	"fmt"
	"sync"
	"sync/atomic"

	"xroce/roce/verbs"
)

// Limits of a work queue.
const (
	MaxWR     = 1 << 15 // work requests in a queue
	MaxSGE    = 32      // pieces of one work request
	MaxInline = 1024    // bytes of inline data of one work request
)

// A WorkQueue is the ring between an application that posts and the queue that works
// on what was posted. Each entry E has room for a number of pieces and bytes of inline data
// beside it. The memory comes with the first post: a QP that was never used costs little.
// Init comes before everything else; of the zero WorkQueue, which has room for nothing,
// only Head, Tail, Empty, Posted, MaxSGE, Clear and the lock may be used.
//
// Locking: whoever posts holds Lock for Next, Fill and Push, which moves the tail. Whoever works
// is one goroutine at a time, under the progress lock of its queue, and takes entries without
// Lock: it alone moves the head, with Pop. Entries from Head up to Tail are the worker's,
// to read and to change; all others are the poster's. Entries are counted from 0 since the
// queue was made, and the count wraps at 2^32.
type WorkQueue[E any] struct {
	head, tail atomic.Uint32

	mu        sync.Mutex
	ring      []E
	sges      []verbs.SGE
	inline    *[]byte // nil when no entry may have inline data
	mask      uint32
	maxSGE    uint8
	maxInline uint16
}

// Init makes a queue for at least depth entries, 1 to MaxWR, each with up to maxSGE pieces,
// 1 to MaxSGE, and maxInline bytes. The error is ErrInvalid and names the queue as what.
func (w *WorkQueue[E]) Init(what string, depth, maxSGE, maxInline int) error {
	if depth < 1 || depth > MaxWR {
		return fmt.Errorf("%w: %s depth %d is not in 1..%d", verbs.ErrInvalid, what, depth, MaxWR)
	}
	if maxSGE < 1 || maxSGE > MaxSGE {
		return fmt.Errorf("%w: %d %s SGEs are not in 1..%d", verbs.ErrInvalid, maxSGE, what, MaxSGE)
	}
	w.mask, w.maxSGE, w.maxInline = uint32(ringSize(depth)-1), uint8(maxSGE), uint16(maxInline)
	return nil
}

// Lock keeps others from posting until Unlock.
func (w *WorkQueue[E]) Lock() { w.mu.Lock() }

// Unlock lets others post again.
func (w *WorkQueue[E]) Unlock() { w.mu.Unlock() }

// MaxSGE returns how many pieces an entry may have, 0 when there is no queue.
func (w *WorkQueue[E]) MaxSGE() int { return int(w.maxSGE) }

// MaxInline returns how many bytes of inline data an entry may have.
func (w *WorkQueue[E]) MaxInline() int { return int(w.maxInline) }

// Head returns the number of the oldest entry; it is Tail when the queue is empty.
func (w *WorkQueue[E]) Head() uint32 { return w.head.Load() }

// Tail returns the number of the entry that will be posted next.
func (w *WorkQueue[E]) Tail() uint32 { return w.tail.Load() }

// Pop gives the place of the oldest entry back to those who post. It is the worker's, and
// the queue is not empty. The entry may be overwritten from then on.
func (w *WorkQueue[E]) Pop() { w.head.Store(w.head.Load() + 1) }

// PopN is Pop of so many entries.
func (w *WorkQueue[E]) PopN(n uint32) { w.head.Store(w.head.Load() + n) }

// grow allocates the ring. The caller holds mu, and no entry was ever posted.
func (w *WorkQueue[E]) grow() {
	n := int(w.mask) + 1
	w.ring, w.sges = w.newRing(n)
	if w.maxInline > 0 {
		memory := make([]byte, n*int(w.maxInline))
		w.inline = &memory
	}
}

// At returns the entry with a number between Head and Tail.
func (w *WorkQueue[E]) At(i uint32) *E { return &w.ring[i&w.mask] }

// SGList returns the first n pieces of entry i.
func (w *WorkQueue[E]) SGList(i uint32, n int) []verbs.SGE {
	base := int(i&w.mask) * int(w.maxSGE)
	return w.sges[base : base+n]
}

// InlineData returns the first n bytes of inline data of entry i, nil for none, which an
// entry may have of any queue.
func (w *WorkQueue[E]) InlineData(i uint32, n uint32) []byte {
	if n == 0 {
		return nil
	}
	base := int(i&w.mask) * int(w.maxInline)
	return (*w.inline)[base : base+int(n)]
}

// CheckSGList returns the length of a list in bytes. The error is ErrInvalid when the list
// has more pieces than an entry, or more bytes than a message. It needs no lock.
func (w *WorkQueue[E]) CheckSGList(list []verbs.SGE) (uint32, error) {
	if len(list) > int(w.maxSGE) {
		return 0, fmt.Errorf("%w: %d SGEs, the queue takes %d", verbs.ErrInvalid, len(list),
			w.maxSGE)
	}
	var total uint64
	for i := range list {
		total += uint64(list[i].Length)
	}
	if total > verbs.MaxMessage {
		return 0, fmt.Errorf("%w: %d bytes are more than a message of 2^31", verbs.ErrInvalid,
			total)
	}
	return uint32(total), nil
}

// Next returns the entry n behind that which will be posted next, for the poster to write, as
// all before it. The error is ErrQueueFull. The caller holds Lock.
func (w *WorkQueue[E]) Next(n uint32) (*E, error) {
	at := w.tail.Load() + n
	if at-w.head.Load() > w.mask {
		return nil, verbs.ErrQueueFull
	}
	if w.ring == nil {
		w.grow()
	}
	return w.At(at), nil
}

// Fill gives the entry that Next returned for n its pieces, which CheckSGList has accepted, and
// its inline data, at most MaxInline bytes; both are copied. The caller holds Lock.
func (w *WorkQueue[E]) Fill(n uint32, list []verbs.SGE, inline []byte) {
	at := w.tail.Load() + n
	copy(w.SGList(at, len(list)), list)
	if len(inline) > 0 {
		copy(w.InlineData(at, uint32(len(inline))), inline)
	}
}

// Push posts the next n entries, which were filled. The caller holds Lock.
func (w *WorkQueue[E]) Push(n uint32) { w.tail.Store(w.tail.Load() + n) }

// Empty reports whether nothing is posted.
func (w *WorkQueue[E]) Empty() bool { return w.head.Load() == w.tail.Load() }

// Posted is the number of entries that are not complete.
func (w *WorkQueue[E]) Posted() int { return int(w.tail.Load() - w.head.Load()) }

// Clear forgets every entry. It takes Lock, and is the worker's.
func (w *WorkQueue[E]) Clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.head.Store(w.tail.Load())
}

// A RecvWQE is an entry of a receive queue: a receive without its pieces.
type RecvWQE struct {
	WRID   uint64
	Length uint32 // of all pieces, in bytes
	NumSGE uint8
}

// newRing returns memory for at least depth entries and their pieces.
func (w *WorkQueue[E]) newRing(depth int) ([]E, []verbs.SGE) {
	n := ringSize(depth)
	return make([]E, n), make([]verbs.SGE, n*int(w.maxSGE))
}
