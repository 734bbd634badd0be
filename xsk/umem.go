package xsk

import (
	"fmt"
	"math/bits"
)

// rxHeadroom is what the kernel leaves free in front of the payload in each
// receive chunk (XDP_PACKET_HEADROOM).
const rxHeadroom = 256

// zcTailroom is what a multi-buffer zero-copy driver keeps for itself at the
// end of each receive chunk (struct skb_shared_info), and zcAlign what the rest
// is rounded down to (kernel net/xdp/xsk_buff_pool.c, include/net/xdp_sock_drv.h).
const (
	zcTailroom = 320
	zcAlign    = 128
)

// owner says who may touch a chunk. A chunk has exactly one owner at any time.
//
//	       reserve            Transmit            completion
//	free ----------> app(tx) ----------> tx ------------------> free   TX share
//	        fillSpare      Receive            Release
//	free <---------> fill --------> rx/app ----------> fill or free    RX share
//	                                  | Forward
//	                                  +--------> tx --completion-> fill or free
type owner uint8

const (
	ownerFree owner = iota // without owner: on the stack of free transmit frames, or spare
	ownerFill              // the kernel's, to receive into, until it is in the RX ring
	ownerRx                // ours: head of a frame whose tail has not come yet
	ownerTx                // the kernel's, to send from, until it is in the CQ
	ownerApp               // handed out by Receive or Reserve
)

var ownerNames = [...]string{"free", "fill", "rx", "tx", "app"}

// String returns the owner's name.
func (o owner) String() string {
	if int(o) < len(ownerNames) {
		return ownerNames[o]
	}
	return fmt.Sprintf("owner(%d)", uint8(o))
}

// umem is the memory that both sides see, cut into chunks of one size. The
// first rxChunks chunks receive and the others send, for good: a burst in one
// direction cannot starve the other.
//
// Every move of a chunk is checked against its ownership byte. One byte load,
// compare and store a chunk cost less than a nanosecond, so the check is always
// on: a frame that is in two places is silent corruption otherwise.
//
// A socket of a Group has a part of the memory, and counts its chunks from base.
type umem struct {
	mem      []byte
	base     uint64 // address of chunk 0
	chunk    uint32 // bytes, a power of two
	shift    uint   // log2(chunk)
	rxChunks uint32
	perTx    uint32 // adjacent chunks per transmit frame: 1, or 2 with multi-buffer
	owners   []owner
	free     []uint32 // stack of free transmit frames, by first chunk; last used on top
}

// init cuts mem, from the address base on, into rxFrames receive chunks and txFrames
// transmit frames.
func (u *umem) init(mem []byte, base uint64, chunk, rxFrames, txFrames, perTx uint32) {
	total := rxFrames + txFrames*perTx
	*u = umem{
		mem:      mem,
		base:     base,
		chunk:    chunk,
		shift:    uint(bits.TrailingZeros32(chunk)),
		rxChunks: rxFrames,
		perTx:    perTx,
		owners:   make([]owner, total),
		free:     make([]uint32, 0, txFrames),
	}
	for i := range txFrames {
		u.free = append(u.free, rxFrames+(txFrames-1-i)*perTx)
	}
}

// setOwner changes the owner of chunk c. It panics when the chunk is not from's,
// which is a bug in this package or a frame given back twice.
func (u *umem) setOwner(c uint32, from, to owner) {
	if u.owners[c] != from {
		u.wrongOwner(c, from, to)
	}
	u.owners[c] = to
}

// wrongOwner is apart so that setOwner stays small enough to be inlined.
func (u *umem) wrongOwner(c uint32, from, to owner) {
	panic(fmt.Sprintf("xsk: chunk %d moves from %v to %v, but its owner is %v",
		c, from, to, u.owners[c]))
}

// index returns the chunk that holds the byte at addr.
func (u *umem) index(addr uint64) uint32 { return uint32((addr - u.base) >> u.shift) }

// addr returns the address of the first byte of chunk c.
func (u *umem) addr(c uint32) uint64 { return u.base + uint64(c)<<u.shift }

// isOwnedBy reports whether the chunk at addr exists and is o's. Addresses that come
// from the kernel are checked with it before they are believed.
func (u *umem) isOwnedBy(addr uint64, o owner) bool {
	c := (addr - u.base) >> u.shift // huge for an address below base
	return c < uint64(len(u.owners)) && u.owners[c] == o
}

// bytes returns the n bytes at addr, without room to grow into the next frame.
func (u *umem) bytes(addr uint64, n uint32) []byte {
	end := addr + uint64(n)
	return u.mem[addr:end:end]
}

// frame returns the transmit frame whose first chunk is c.
func (u *umem) frame(c uint32) []byte { return u.bytes(u.addr(c), u.chunk*u.perTx) }

// pop takes a free transmit frame for the application. There must be one.
func (u *umem) pop() uint32 {
	c := u.free[len(u.free)-1]
	u.free = u.free[:len(u.free)-1]
	for i := range u.perTx {
		u.setOwner(c+i, ownerFree, ownerApp)
	}
	return c
}

// push returns an unsent transmit frame from the application.
func (u *umem) push(c uint32) {
	for i := range u.perTx {
		u.setOwner(c+i, ownerApp, ownerFree)
	}
	u.free = append(u.free, c)
}

// sent takes transmit chunk c back from the kernel; its frame is free when none
// of its chunks is on the way any more.
func (u *umem) sent(c uint32) {
	u.setOwner(c, ownerTx, ownerFree)
	first := u.rxChunks + (c-u.rxChunks)&^(u.perTx-1)
	for i := range u.perTx {
		if u.owners[first+i] != ownerFree {
			return
		}
	}
	u.free = append(u.free, first)
}

// isRx reports whether chunk c belongs to the receive share.
func (u *umem) isRx(c uint32) bool { return c < u.rxChunks }

// rxRoom is how many bytes of a frame one receive chunk holds.
func rxRoom(chunk uint32, zeroCopy, multiBuffer bool) int {
	room := int(chunk) - rxHeadroom
	if zeroCopy && multiBuffer {
		room -= zcTailroom
		room -= room % zcAlign
	}
	return room
}
