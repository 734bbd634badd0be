package queue

import (
	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// Inline receive (scatter to CQE, as mlx5 has it): the payload of a small SEND, of
// a small READ response, or of an atomic response waits beside the completion queue
// entry and goes to its memory when that is polled. Keys are checked when the
// packet comes, as ever, so the peer is told of memory that is not the QP's; and
// again when the bytes are stored.
//
// After the completion was polled, memory is the same as without inline receive.
// Whatever could change or read the memory, or change its keys, before that has the
// bytes stored first: any change of a key, a fenced work request, FLUSH, what later messages
// of the QP write or the peer reads at once, and the completion being dropped.

// inlineDepth is how many completions with a payload a CQ holds: before one more all of
// them are written.
const inlineDepth = 256

// wcInline marks a completion in the ring of a CQ whose payload waits beside it.
// It is cleared before the completion is polled.
const wcInline verbs.WCFlags = 1 << 7

// An inlineEntry is the payload of a completion that was not polled yet.
type inlineEntry struct {
	keys   *mem.Keys
	by     mem.Accessor
	at     uint32 // its completion, as CQ.tail counts
	n      uint8
	pieces uint8
	list   [inlinePieces]verbs.SGE
	data   [MaxInlineRecv]byte
}

// An inlineRing has those of a CQ, in the order of its completions with wcInline. Its
// memory comes with the first.
type inlineRing struct {
	ring       []inlineEntry
	head, tail uint32
	// keys are those that all of them are of.
	keys     *mem.Keys
	deferred bool // it is among the WriteBackers of keys
}

// keepInline keeps the payload of the completion wc, which is about to be added to c. If
// there is no room, what was kept before is written. The caller holds c.mu.
func (c *CQ) keepInline(in *InlinePayload, wc *verbs.Completion) {
	p := &c.inline
	if p.ring == nil {
		p.ring, p.keys = make([]inlineEntry, min(len(c.ring), inlineDepth)), in.keys
	}
	if p.keys != in.keys {
		failUnlessStored(wc, in.store())
		return
	}
	if p.tail-p.head == uint32(len(p.ring)) {
		c.storeAllInline()
	}
	if p.head == p.tail {
		p.head, p.tail = 0, 0 // the same memory again, which is in the cache
	}
	e := &p.ring[p.tail%uint32(len(p.ring))]
	e.at, e.keys, e.by, e.pieces = c.tail.Load(), in.keys, in.by, uint8(in.pieces)
	copy(e.list[:], in.list[:in.pieces])
	n := copy(e.data[:], in.head)
	e.n = uint8(n + copy(e.data[n:], in.tail))
	p.tail++
	c.hasInline.Store(true)
	wc.Flags |= wcInline
	if !p.deferred {
		p.deferred = true
		p.keys.AddWriteBacker(c)
	}
}

// storeInline writes the payloads of completions that leave the ring, in order. The
// caller holds mu.
func (c *CQ) storeInline(list []verbs.Completion) {
	for i := range list {
		if wc := &list[i]; wc.Flags&wcInline != 0 {
			c.storeOldest(wc)
		}
	}
}

// storeOldest writes the payload of the oldest completion that has one. The caller
// holds mu.
func (c *CQ) storeOldest(wc *verbs.Completion) {
	p := &c.inline
	e := &p.ring[p.head%uint32(len(p.ring))]
	p.head++
	wc.Flags &^= wcInline
	failUnlessStored(wc, Scatter(e.keys, e.by, e.list[:e.pieces], 0, e.data[:e.n]))
	if p.head == p.tail {
		c.hasInline.Store(false) // it is in memory now
	}
}

// failUnlessStored makes a completion a failed one if its payload could not be stored.
func failUnlessStored(wc *verbs.Completion, f mem.Fault) {
	if f != mem.OK {
		*wc = verbs.Completion{
			WRID: wc.WRID, Status: verbs.StatusLocProtErr, Opcode: wc.Opcode, QPN: wc.QPN,
			Time: wc.Time,
		}
	}
}

// WriteBack writes the payloads of all completions that were not polled yet
// (mem.WriteBacker). It is for keys, which forget the CQ when they call it.
func (c *CQ) WriteBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inline.deferred = false
	c.storeAllInline()
}

// FlushInline writes payloads that wait in completions to their memory before something
// that comes after them gets at it. Keys still know of the CQ. The caller has the progress
// lock of the queue that adds to the CQ, so nothing is added meanwhile.
func (c *CQ) FlushInline() {
	if !c.hasInline.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storeAllInline()
}

// storeAllInline writes the payloads of all completions in the ring. The caller holds mu.
func (c *CQ) storeAllInline() {
	for p := &c.inline; p.head != p.tail; {
		c.storeOldest(&c.ring[p.ring[p.head%uint32(len(p.ring))].at&c.mask])
	}
}
