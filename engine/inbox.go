package engine

import (
	"sync"
	"sync/atomic"

	"xroce/xsk"
)

// inboxFrames is how many frames may wait in an inbox. More are lost, as in a receive
// ring that is full.
const inboxFrames = 1024

// An inbox has frames for QPs of a queue that came to another queue of the device:
// from its link, or from a QP that lives there. They are copies, since a frame belongs
// to its link.
type inbox struct {
	mu     sync.Mutex
	count  atomic.Int32 // of frames, for a look without the lock
	frames []xsk.RxFrame
	spare  []xsk.RxFrame
	lost   uint64 // there was no room
}

// put copies a frame, if there is room for it.
func (b *inbox) put(f *xsk.RxFrame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.frames)
	if n == inboxFrames {
		b.lost++
		return
	}
	if n < cap(b.frames) {
		b.frames = b.frames[:n+1] // with the buffer that it had
	} else {
		b.frames = append(b.frames, xsk.RxFrame{})
	}
	to := &b.frames[n]
	to.Head = append(append(to.Head[:0], f.Head...), f.Tail...)
	b.count.Store(int32(n + 1))
}

// take returns the frames and is empty. They are valid until the next take.
func (b *inbox) take() []xsk.RxFrame {
	if b.count.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.frames
	b.frames, b.spare = b.spare[:0], taken
	b.count.Store(0)
	return taken
}

// dropped returns how many frames had no room.
func (b *inbox) dropped() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}

// forward gives a frame to the queue whose QPs it is for. The caller holds the lock of
// the queue that has it.
func (q *queue) forward(f *xsk.RxFrame) {
	q.inbox.put(f)
	q.rouse()
}
