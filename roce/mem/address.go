package mem

import "unsafe"

// address returns where b begins in this process' memory, 0 for an empty slice
// without memory. It is the only use of unsafe here: the number is never turned
// back into a pointer, it only gives a region the virtual address that verbs
// programs expect.
func address(b []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}
