package mem

import "sync/atomic"

// wordSize is what an atomic access works on, and its alignment (IBA 9.4.5).
const wordSize = 8

// A WordOp is an atomic operation on eight bytes in host order.
type WordOp uint8

// The atomic operations.
const (
	FetchAddOp    WordOp = iota // adds x
	CompareSwapOp               // stores y if the word is x
	StoreOp                     // stores x
)

// Do does the operation and returns what the word was, 0 for a store.
func (op WordOp) Do(w *uint64, x, y uint64) (old uint64) {
	switch op {
	case FetchAddOp:
		return atomic.AddUint64(w, x) - x
	case StoreOp:
		atomic.StoreUint64(w, x)
		return 0
	}
	// The swap of sync/atomic does not tell the old value when it fails. Another
	// round is needed only if the word changed to x in between, so someone else
	// made progress.
	for {
		if old = atomic.LoadUint64(w); old != x {
			return old
		}
		if atomic.CompareAndSwapUint64(w, x, y) {
			return x
		}
	}
}

// FetchAdd adds to the number at addr, modulo 2^64, and returns what it was.
// The number is 8 bytes in host order; add is the operand as a number, however
// the wire spells it. Needs REMOTE_ATOMIC.
//
// It is atomic with every other atomic access to the word: those of this
// package for any queue, and those of sync/atomic or of another process that
// shares the memory (IBV_ATOMIC_GLOB). It is so because the CPU does it.
func (k *Keys) FetchAdd(a Accessor, key uint32, addr, add uint64) (old uint64, f Fault) {
	return k.word(a, key, addr, RemoteAtomic, FetchAddOp, add, 0)
}

// CompareSwap puts swap in the place of the number at addr if that is equal to
// compare, and returns what it was. If not, memory is not written at all.
// Operands, rights and atomicity are as with FetchAdd.
func (k *Keys) CompareSwap(a Accessor, key uint32, addr, compare, swap uint64) (
	old uint64, f Fault,
) {
	return k.word(a, key, addr, RemoteAtomic, CompareSwapOp, compare, swap)
}

// StoreWord writes 8 bytes at addr in one piece (ATOMIC WRITE): who reads the
// word with an atomic load sees all of them or none. The bytes land in the order
// in which they stand in memory, so value is the payload in host order:
// binary.NativeEndian.Uint64(payload). Needs REMOTE_WRITE.
func (k *Keys) StoreWord(a Accessor, key uint32, addr, value uint64) Fault {
	_, f := k.word(a, key, addr, RemoteWrite, StoreOp, value, 0)
	return f
}

// word does op to the word at addr. Both the address by which the request names it
// and the memory itself must be aligned: RegisterAt may make them differ.
func (k *Keys) word(a Accessor, key uint32, addr uint64, need Access, op WordOp, x, y uint64) (
	old uint64, f Fault,
) {
	v, off, f := k.resolve(a, key, addr, wordSize, need)
	if f != OK {
		return 0, f
	}
	if addr%wordSize != 0 {
		return 0, FaultMisaligned
	}
	return v.word(off, op, x, y)
}
