package pager_test

import "unsafe"

// unsafePointer is an address as package unix wants it.
func unsafePointer(addr uint64) unsafe.Pointer {
	at := uintptr(addr)
	return *(*unsafe.Pointer)(unsafe.Pointer(&at))
}

// bytesOf is memory as package unix wants it.
func bytesOf(addr uint64, pages int) []byte {
	return unsafe.Slice((*byte)(unsafePointer(addr)), pages*page)
}
