package roce_test

import (
	"sync"

	"golang.org/x/sys/unix"

	"xroce/roce"
)

// hugeMemory is 2^31 bytes of which no test touches more than a few pages: the
// operating system gives the others no memory. They are none of Go's: what Go gives, it
// clears byte by byte where it lay before, and beside 2 GiB that live it lets as much and
// more garbage stand, all of it in pages that are new.
var hugeMemory = sync.OnceValue(func() []byte {
	b, err := unix.Mmap(-1, 0, roce.MaxMessage, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		panic(err)
	}
	return b
})
