package roce

import (
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// Inline receive (scatter to CQE, as mlx5 has it): the payload of a small SEND, of
// a small READ response, or of an atomic response rides in the completion queue
// entry and goes to its memory when that is polled. Keys are checked when the
// packet comes, as ever, so the peer is told of memory that is not the QP's; and
// again when the bytes are stored.
//
// Nobody can tell the difference by what is in memory after the completion was
// polled. All that could happen to the memory or its keys before has the bytes
// stored first: any change of a key, a fenced work request, FLUSH, what later messages
// of the QP write or the peer reads at once, and the completion being dropped.
const (
	// MaxInlineRecv is the most bytes of a message that ride in its completion.
	MaxInlineRecv = 64
	// inlinePieces is how many pieces of memory they may be for: more are written
	// at once, as without inline receive.
	inlinePieces = 4
	// inlineDepth is how many such completions a CQ holds: before one more all of them
	// are written.
	inlineDepth = 256
)

// wcInline marks a completion in the ring of a CQ whose payload waits beside it.
// Nobody else sees it.
const wcInline WCFlags = 1 << 7

// A delivery is payload on its way from a packet to a CQ, with where it is to go.
type delivery struct {
	keys       *mem.Keys
	by         mem.Accessor
	list       [inlinePieces]SGE
	pieces     int
	head, tail []byte // of the packet, borrowed
}

// A parcel is payload that waits in a CQ.
type parcel struct {
	keys   *mem.Keys
	by     mem.Accessor
	at     uint32 // its completion, as CQ.tail counts
	n      uint8
	pieces uint8
	list   [inlinePieces]SGE
	data   [MaxInlineRecv]byte
}

// parcels are those of a CQ, in the order of its completions with wcInline. Their
// memory comes with the first.
type parcels struct {
	ring       []parcel
	head, tail uint32
	// keys are those that all of them are of.
	keys   *mem.Keys
	parked bool // keys know of it
}

// inlines prepares to deliver the payload of a packet, beginning off bytes into the
// pieces of a work request, and reports whether it can ride in the completion. The
// fault is that of memory that cannot take it at all.
func (q *QP) inlines(in *delivery, by mem.Accessor, list []SGE, head, tail []byte) (
	bool, mem.Fault,
) {
	left := uint32(len(head) + len(tail))
	if left > uint32(q.inline) || left == 0 {
		return false, mem.OK
	}
	in.keys, in.by, in.head, in.tail = q.keys, by, head, tail
	for i := 0; left > 0; i++ {
		s := list[i]
		if s.Length = min(s.Length, left); s.Length == 0 {
			continue
		}
		if in.pieces == inlinePieces {
			return false, mem.OK
		}
		steady, fault := q.keys.Steady(by, s.LKey, s.Addr, int(s.Length), mem.LocalWrite)
		if !steady {
			return false, fault
		}
		in.list[in.pieces] = s
		in.pieces++
		left -= s.Length
	}
	return true, mem.OK
}

// deliverPacket is scatterPacket for a message of one packet that makes a
// completion: it reports whether the payload is in in, to ride there.
func (q *QP) deliverPacket(in *delivery, by mem.Accessor, list []SGE, p *wire.Packet) (
	bool, mem.Fault,
) {
	if ok, fault := q.inlines(in, by, list, p.Payload, p.PayloadTail); ok || fault != mem.OK {
		return ok, fault
	}
	q.receiveCQ().land()
	return false, q.scatterPacket(by, list, 0, p)
}

// store writes the payload at once.
func (in *delivery) store() mem.Fault {
	list := in.list[:in.pieces]
	if fault := scatter(in.keys, in.by, list, 0, in.head); fault != mem.OK || len(in.tail) == 0 {
		return fault
	}
	return scatter(in.keys, in.by, list, uint32(len(in.head)), in.tail)
}

// add keeps the payload of the completion wc, which is about to be added to c. If
// there is no room, what was kept before is written. The caller holds c.mu.
func (c *CQ) add(in *delivery, wc *Completion) {
	p := &c.parcels
	if p.ring == nil {
		p.ring, p.keys = make([]parcel, min(len(c.ring), inlineDepth)), in.keys
	}
	if p.keys != in.keys {
		failUnlessStored(wc, in.store())
		return
	}
	if p.tail-p.head == uint32(len(p.ring)) {
		c.unpackAll()
	}
	if p.head == p.tail {
		p.head, p.tail = 0, 0 // the same memory again, which is in the cache
	}
	one := &p.ring[p.tail%uint32(len(p.ring))]
	one.at, one.keys, one.by, one.pieces = c.tail.Load(), in.keys, in.by, uint8(in.pieces)
	copy(one.list[:], in.list[:in.pieces])
	n := copy(one.data[:], in.head)
	one.n = uint8(n + copy(one.data[n:], in.tail))
	p.tail++
	c.riding.Store(true)
	wc.Flags |= wcInline
	if !p.parked {
		p.parked = true
		p.keys.Park(c)
	}
}

// unpack writes the payloads of completions that leave the ring, in order. The
// caller holds mu.
func (c *CQ) unpack(list []Completion) {
	for i := range list {
		if wc := &list[i]; wc.Flags&wcInline != 0 {
			c.unpackOne(wc)
		}
	}
}

// unpackOne writes the payload of the oldest completion that has one. The caller
// holds mu.
func (c *CQ) unpackOne(wc *Completion) {
	p := &c.parcels
	one := &p.ring[p.head%uint32(len(p.ring))]
	p.head++
	wc.Flags &^= wcInline
	failUnlessStored(wc, scatter(one.keys, one.by, one.list[:one.pieces], 0, one.data[:one.n]))
	if p.head == p.tail {
		c.riding.Store(false) // it is in memory now
	}
}

// failUnlessStored makes a completion a failed one if its memory was not to be had any more.
func failUnlessStored(wc *Completion, f mem.Fault) {
	if f != mem.OK {
		*wc = Completion{WRID: wc.WRID, Status: StatusLocProtErr, QPN: wc.QPN, Time: wc.Time}
	}
}

// StoreParked writes the payloads of all completions that were not polled yet
// (mem.Parker). It is for keys, which forget the CQ when they call it.
func (c *CQ) StoreParked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parcels.parked = false
	c.unpackAll()
}

// land writes what rides before something that comes after it gets at memory. Keys still
// know of the CQ. The caller has the progress lock, so nothing is added meanwhile.
func (c *CQ) land() {
	if !c.riding.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unpackAll()
}

// unpackAll writes the payloads of all completions in the ring. The caller holds mu.
func (c *CQ) unpackAll() {
	for p := &c.parcels; p.head != p.tail; {
		c.unpackOne(&c.ring[p.ring[p.head%uint32(len(p.ring))].at&c.mask])
	}
}
