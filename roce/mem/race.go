//go:build race

package mem

import "sync"

// What peers write to the same memory, by several queue pairs, queues or devices, they put in order
// themselves, or want the same bytes there: a part of a message that is sent again by another rail,
// for one. An adapter does not order it, and nothing here does. For the race detector such writes
// come one after the other. It still sees who reads there, or writes there, without having heard of
// any completion; one of a later write to the same page hides that another is missing.

// stripes are locks for memory: that of a page has one of them.
var stripes [64]sync.Mutex

// pageShift is that of the pages.
const pageShift = 12

// beginStore is called before something is stored there, and returns what endStore needs.
func beginStore(there []byte) (held uint64) {
	if len(there) == 0 {
		return 0
	}
	first, last := address(there)>>pageShift, (address(there)+uint64(len(there))-1)>>pageShift
	for page := first; page <= last && page-first < uint64(len(stripes)); page++ {
		held |= 1 << (page % uint64(len(stripes)))
	}
	for i := range stripes { // in one order, whoever asks
		if held>>i&1 != 0 {
			stripes[i].Lock()
		}
	}
	return held
}

// endStore is called afterwards.
func endStore(held uint64) {
	for i := range stripes {
		if held>>i&1 != 0 {
			stripes[i].Unlock()
		}
	}
}
