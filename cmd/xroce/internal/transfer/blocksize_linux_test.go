package transfer

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFreeBytes are counted in fragments, cannot overflow, and have no end where the file
// system does not say how many there are.
func TestFreeBytes(t *testing.T) {
	for _, c := range []struct {
		st   unix.Statfs_t
		want int64
	}{
		{unix.Statfs_t{Blocks: 10, Bavail: 3, Bsize: 1 << 20, Frsize: 4096}, 3 * 4096},
		{unix.Statfs_t{Blocks: 10, Bavail: 3, Bsize: 512}, 3 * 512},
		{unix.Statfs_t{Blocks: 10, Bsize: 512, Frsize: 512}, 0},
		{unix.Statfs_t{Bavail: 3, Bsize: 512, Frsize: 512}, math.MaxInt64},
		{unix.Statfs_t{Blocks: 1, Bavail: 1 << 60, Bsize: 4096, Frsize: 4096}, math.MaxInt64},
	} {
		if got := freeOf(&c.st); got != c.want {
			t.Errorf("%+v: %d bytes, want %d", c.st, got, c.want)
		}
	}
}
