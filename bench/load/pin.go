package load

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// pinStep pins memory and gives it back: what an adapter needs to reach memory of o.Message bytes,
// and we do not.
func pinStep(n int) (func(times int) bool, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	for i := range b {
		b[i] = 1 // the pages are there, as those of a message are
	}
	if err := unix.Mlock(b); err != nil {
		return nil, fmt.Errorf("load: mlock of %d bytes: %w", n, err)
	}
	return func(times int) bool {
		ok := true
		for range times {
			ok = unix.Munlock(b) == nil && unix.Mlock(b) == nil && ok
		}
		return ok
	}, nil
}
