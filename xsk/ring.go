package xsk

import "sync/atomic"

// Desc is one entry of the RX or TX ring: a piece of a frame in the UMEM.
// It has the layout of struct xdp_desc in the kernel's include/uapi/linux/if_xdp.h.
type Desc struct {
	Addr    uint64 // offset of the first byte in the UMEM
	Len     uint32 // bytes
	Options uint32 // PktContd, or 0
}

// PktContd in Desc.Options says that the next descriptor carries on with the
// same frame (XDP_PKT_CONTD).
const PktContd = 1

// ringNeedWakeup is XDP_RING_NEED_WAKEUP, a bit in a ring's flags word.
const ringNeedWakeup = 1

// RingKind names one of the four rings of a socket.
type RingKind uint8

// The four rings. The first of each pair of words in the comment is who writes
// the producer index.
const (
	FillRing       RingKind = iota // we produce addresses, the kernel consumes
	CompletionRing                 // the kernel produces addresses, we consume
	RxRing                         // the kernel produces descriptors, we consume
	TxRing                         // we produce descriptors, the kernel consumes
)

// String returns the kernel's name of the ring in lower case.
func (k RingKind) String() string {
	switch k {
	case FillRing:
		return "fill"
	case CompletionRing:
		return "completion"
	case RxRing:
		return "rx"
	case TxRing:
		return "tx"
	}
	return "unknown"
}

// entry is what a ring holds: UMEM addresses or descriptors.
type entry interface{ uint64 | Desc }

// RingMemory is a ring as both sides see it: two index words, a flags word and
// the entries, all in memory shared with the kernel.
type RingMemory[T entry] struct {
	Producer *atomic.Uint32 // free-running count of entries ever produced
	Consumer *atomic.Uint32 // free-running count of entries ever consumed
	Flags    *atomic.Uint32 // written by the kernel: XDP_RING_NEED_WAKEUP
	Entries  []T            // a power of two of them

	Mapping []byte // what UnmapRing takes; nil when nothing was mapped
}

// span is a batch of ring slots: one slice, or two when the batch wraps around
// the end of the ring.
type span[T entry] struct {
	first, second []T
}

// len is the number of slots in the span.
func (s *span[T]) len() uint32 { return uint32(len(s.first) + len(s.second)) }

// at returns slot i. It panics when i is outside the span.
func (s *span[T]) at(i uint32) *T {
	if i < uint32(len(s.first)) {
		return &s.first[i]
	}
	return &s.second[i-uint32(len(s.first))]
}

// ring is our end of one ring. It is written once and used by all four: as the
// producer through reserve and submit, as the consumer through peek and
// release. The order of calls is that of libxdp's xsk.h
// (xsk_ring_prod__reserve, _submit; xsk_ring_cons__peek, _release).
//
// Indices are free-running 32-bit counts, so entries = producer - consumer in
// uint32 arithmetic, which is right across the wrap, and slot = index & mask.
//
// Each side keeps a copy of the index that the other side writes and looks at
// the shared word only when the copy says "not enough". A stale copy is safe:
// the other side only ever adds entries (for a consumer) or room (for a
// producer), so staleness can hide some but never invent any.
//
// A ring belongs to one goroutine at a time.
type ring[T entry] struct {
	mem  RingMemory[T]
	mask uint32
	size uint32

	// ours is the next index we produce or consume; it runs ahead of the
	// shared word by what was reserved or peeked and not yet given up.
	// theirs is our copy of the index the kernel writes.
	ours, theirs uint32
}

// init takes over mem. The indices start where the words in memory stand: 0 on
// a new socket, anything in a test.
func (r *ring[T]) init(mem RingMemory[T], kernelConsumes bool) {
	r.mem = mem
	r.size = uint32(len(mem.Entries))
	r.mask = r.size - 1
	if kernelConsumes {
		r.ours, r.theirs = mem.Producer.Load(), mem.Consumer.Load()
	} else {
		r.ours, r.theirs = mem.Consumer.Load(), mem.Producer.Load()
	}
}

// detach makes the ring an empty one without slots, so that a call after Close
// finds nothing to do where it would have touched unmapped memory.
func (r *ring[T]) detach() {
	*r = ring[T]{mem: RingMemory[T]{
		Producer: new(atomic.Uint32),
		Consumer: new(atomic.Uint32),
		Flags:    new(atomic.Uint32),
	}}
}

// window returns the n slots from index on.
func (r *ring[T]) window(index, n uint32) span[T] {
	if n == 0 {
		return span[T]{}
	}
	from := index & r.mask
	if from+n <= r.size {
		return span[T]{first: r.mem.Entries[from : from+n]}
	}
	return span[T]{first: r.mem.Entries[from:], second: r.mem.Entries[:from+n-r.size]}
}

// reserve returns up to n free slots to write. Several reserves may precede one
// submit.
func (r *ring[T]) reserve(n uint32) span[T] {
	free := r.size - (r.ours - r.theirs)
	if free < n {
		// No barrier is needed between this load and our writes to the slots:
		// a write that depends on the load cannot pass it. Load is one anyway.
		r.theirs = r.mem.Consumer.Load()
		free = r.size - (r.ours - r.theirs)
	}
	n = min(n, free)
	s := r.window(r.ours, n)
	r.ours += n
	return s
}

// claim returns the next n slots to write without asking the kernel for room. The
// caller knows of the room better: a chunk is in at most one ring once, and the
// ring has a slot for every chunk that can be in it, so there cannot be more than
// size-n entries that the kernel has not read. The kernel publishes its index
// later than it gives the chunks back (xsk_flush of v6.18 publishes the RX ring
// before the fill ring; a send call that ends with EBUSY completes the frame and
// publishes nothing), so reserve may see less room than that.
func (r *ring[T]) claim(n uint32) span[T] {
	s := r.window(r.ours, n)
	r.ours += n
	return s
}

// submit publishes the n oldest reserved slots.
//
// Store is sequentially consistent in Go, which is more than the release that
// the protocol asks for: the entries are visible before the index, and the load
// of the flags word in needWakeup cannot be moved before this store. So the
// kernel either sees the new entries before it goes to sleep, or has set the
// flag that we then see; no wake-up is lost.
func (r *ring[T]) submit(n uint32) {
	if n == 0 {
		return
	}
	r.mem.Producer.Store(r.mem.Producer.Load() + n)
}

// peek returns up to n entries that the kernel produced.
func (r *ring[T]) peek(n uint32) span[T] {
	have := r.theirs - r.ours
	if have < n {
		// This load is the acquire: entries are read after it.
		r.theirs = r.mem.Producer.Load()
		have = r.theirs - r.ours
	}
	n = min(n, have)
	s := r.window(r.ours, n)
	r.ours += n
	return s
}

// known returns how many entries more than were peeked are known to be there.
func (r *ring[T]) known() uint32 { return r.theirs - r.ours }

// release gives the n oldest peeked slots back to the kernel. The store is the
// release: our reads of the entries come before it.
func (r *ring[T]) release(n uint32) {
	if n == 0 {
		return
	}
	r.mem.Consumer.Store(r.mem.Consumer.Load() + n)
}

// The four rings as a socket uses them. Each shows its half of ring.
type (
	fillRing       struct{ ring[uint64] }
	completionRing struct{ ring[uint64] }
	rxRing         struct{ ring[Desc] }
	txRing         struct{ ring[Desc] }
)

// needWakeup reports whether the driver sleeps for want of receive frames and has
// to be woken by a receive call. Never set in copy mode.
func (r *fillRing) needWakeup() bool { return r.mem.Flags.Load()&ringNeedWakeup != 0 }

// needWakeup reports whether the kernel has to be called to send. Always set in
// copy mode.
func (r *txRing) needWakeup() bool { return r.mem.Flags.Load()&ringNeedWakeup != 0 }

// unsent is the number of published descriptors that the kernel has not taken.
// The kernel publishes its index late, so this may be too large, even larger
// than the ring, and never too small.
func (r *txRing) unsent() uint32 { return r.mem.Producer.Load() - r.mem.Consumer.Load() }
