//go:build race

package mem

import (
	"runtime"
	"unsafe"
)

// What peers write to a piece of memory, by several queue pairs, queues or devices, they put in
// order themselves, or want the same bytes there: a part of a message that is sent again by
// another rail, for one. An adapter does not order it, and nothing here does. The race detector is
// told that such writes to the same piece come one after the other. It still sees who reads there,
// or writes there, without having heard of a completion.

// beginStore is called before something is stored in a piece of memory.
func beginStore(piece []byte) {
	if len(piece) > 0 {
		runtime.RaceAcquire(unsafe.Pointer(unsafe.SliceData(piece)))
	}
}

// endStore is called afterwards.
func endStore(piece []byte) {
	if len(piece) > 0 {
		runtime.RaceReleaseMerge(unsafe.Pointer(unsafe.SliceData(piece)))
	}
}
