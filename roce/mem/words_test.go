package mem

import "unsafe"

// bytesOf returns the memory of w, which is aligned as its words are.
func bytesOf(w []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 8*len(w))
}
