package mem

import "unsafe"

// This file is the only use of unsafe here. An address is never turned back
// into a pointer; a word is a pointer into a slice that holds all of it.

// address returns where b begins in this process' memory, 0 for an empty slice
// without memory. It gives a region the virtual address that verbs programs
// expect.
func address(b []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// word returns the first 8 bytes of b as one number in host order, nil when
// they are not aligned: sync/atomic would fault, or not be atomic.
func word(b []byte) *uint64 {
	if address(b[:wordSize])%wordSize != 0 {
		return nil
	}
	return (*uint64)(unsafe.Pointer(unsafe.SliceData(b)))
}
