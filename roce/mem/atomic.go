package mem

import "sync/atomic"

// wordSize is what an atomic access works on, and its alignment (IBA 9.4.5).
const wordSize = 8

// FetchAdd adds to the number at addr, modulo 2^64, and returns what it was.
// The number is 8 bytes in host order; add is the operand as a number, however
// the wire spells it. Needs REMOTE_ATOMIC.
//
// It is atomic with every other atomic access to the word: those of this
// package for any queue, and those of sync/atomic or of another process that
// shares the memory (IBV_ATOMIC_GLOB). It is so because the CPU does it.
func (k *Keys) FetchAdd(d *Domain, key uint32, addr, add uint64) (old uint64, f Fault) {
	w, f := k.word(d, key, addr, RemoteAtomic)
	if f != OK {
		return 0, f
	}
	return atomic.AddUint64(w, add) - add, OK
}

// CompareSwap puts swap in the place of the number at addr if that is equal to
// compare, and returns what it was. If not, memory is not written at all.
// Operands, rights and atomicity are as with FetchAdd.
func (k *Keys) CompareSwap(d *Domain, key uint32, addr, compare, swap uint64) (
	old uint64, f Fault,
) {
	w, f := k.word(d, key, addr, RemoteAtomic)
	if f != OK {
		return 0, f
	}
	// The swap of sync/atomic does not tell the old value when it fails. Another
	// round is needed only if the word changed to compare in between, so someone
	// else made progress.
	for {
		if old = atomic.LoadUint64(w); old != compare {
			return old, OK
		}
		if atomic.CompareAndSwapUint64(w, compare, swap) {
			return compare, OK
		}
	}
}

// StoreWord writes 8 bytes at addr in one piece (ATOMIC WRITE): who reads the
// word with an atomic load sees all of them or none. The bytes land in the order
// in which they stand in memory, so value is the payload in host order:
// binary.NativeEndian.Uint64(payload). Needs REMOTE_WRITE.
func (k *Keys) StoreWord(d *Domain, key uint32, addr, value uint64) Fault {
	w, f := k.word(d, key, addr, RemoteWrite)
	if f != OK {
		return f
	}
	atomic.StoreUint64(w, value)
	return OK
}

// word returns the word at addr. Both the address by which the request names it
// and the memory itself must be aligned: RegisterAt may make them differ.
func (k *Keys) word(d *Domain, key uint32, addr uint64, need Access) (*uint64, Fault) {
	b, f := k.resolve(d, key, addr, wordSize, need)
	if f != OK {
		return nil, f
	}
	w := word(b)
	if w == nil || addr%wordSize != 0 {
		return nil, FaultMisaligned
	}
	return w, OK
}
