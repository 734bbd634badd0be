package engine

import (
	"sync/atomic"

	"xroce/xsk"
)

// inboxFrames is how many frames may wait in an inbox, a power of two. More are lost, as in a
// receive ring that is full.
const inboxFrames = 1024

// An inbox has frames for QPs of a queue that came to another queue of the device: from its
// link, or from a QP that lives there. They are copies, since a frame belongs to its link.
//
// It is a ring without a lock. Any queue puts, under its own progress lock; the one that has
// the inbox takes, under its own. Each slot has a number that says whose turn it is: that of
// the put which may fill it, one more once it is filled, and a round more when it was taken
// (D. Vyukov's bounded queue, with one consumer). So what one queue puts is taken in that order,
// and a queue that is stopped in the middle of a put keeps nobody from putting.
type inbox struct {
	slots []inboxSlot // nil where there is no other queue
	_     [64]byte    // tail is written by others than those who read the rest
	tail  atomic.Uint32
	_     [60]byte
	head  atomic.Uint32 // written under the progress lock of the queue
}

type inboxSlot struct {
	turn atomic.Uint32
	from uint32 // index of the queue that put it
	n    int
	buf  []byte
}

// init makes room for frames of so many bytes.
func (b *inbox) init(room int) {
	b.slots = make([]inboxSlot, inboxFrames)
	buf := make([]byte, inboxFrames*room)
	for i := range b.slots {
		b.slots[i].turn.Store(uint32(i))
		b.slots[i].buf = buf[i*room : (i+1)*room : (i+1)*room]
	}
}

// put copies a frame of the queue with index from, and reports whether there was room for it.
func (b *inbox) put(from uint32, f *xsk.RxFrame) bool {
	for {
		at := b.tail.Load()
		s := &b.slots[at%inboxFrames]
		switch turn := s.turn.Load(); {
		case turn == at && f.Len() > len(s.buf):
			return false // longer than the link takes
		case turn == at && b.tail.CompareAndSwap(at, at+1):
			s.from, s.n = from, f.Len()
			copy(s.buf[copy(s.buf, f.Head):], f.Tail)
			s.turn.Store(at + 1)
			return true
		case int32(turn-at) < 0:
			return false // what it was filled with a round ago is not taken
		}
	}
}

// take fills dst with the oldest frames and returns how many. They are valid until release. Ref[0]
// of each is the index of the queue that it came from.
func (b *inbox) take(dst []xsk.RxFrame) (n int) {
	if b.empty() {
		return 0
	}
	for at := b.head.Load(); n < len(dst); at++ {
		s := &b.slots[at%inboxFrames]
		if s.turn.Load() != at+1 {
			break
		}
		dst[n] = xsk.RxFrame{Head: s.buf[:s.n:s.n], Ref: [2]uint64{uint64(s.from)}}
		n++
	}
	return n
}

// release gives back the n oldest frames that were taken.
func (b *inbox) release(n int) {
	at := b.head.Load()
	for range n {
		b.slots[at%inboxFrames].turn.Store(at + inboxFrames)
		at++
	}
	b.head.Store(at)
}

// empty reports whether nothing was put in that was not taken. It is safe for concurrent use.
func (b *inbox) empty() bool { return b.head.Load() == b.tail.Load() }

// forward gives a frame to another queue, on which the QP that it is for lives.
func (q *queue) forward(to *queue, f *xsk.RxFrame) {
	if q.handOver(to, f) {
		q.fate.kind = fateForwarded
	} else {
		q.dropped(handoverNoRoom)
	}
}

// handOver gives a frame to another queue, whose QPs it is for, and reports whether there was room
// for it. The caller holds the lock of q, which has it.
func (q *queue) handOver(to *queue, f *xsk.RxFrame) bool {
	if !to.inbox.put(uint32(q.index), f) {
		q.handover.noRoom++
		return false
	}
	q.handover.frames++
	to.rouse()
	return true
}

// handoverNoRoom is the counter of frames for which there was none.
const handoverNoRoom = "handover_no_room"

// A handover counts what a queue gave to others, under its progress lock.
type handover struct {
	frames uint64
	noRoom uint64 // lost: the inbox of the other was full
}
