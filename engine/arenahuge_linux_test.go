package engine

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBringIn: memory that cannot be had is found out before anybody touches it. Here it is
// behind the end of a file, which raises SIGBUS as a huge page does that is denied.
func TestBringIn(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := os.Getpagesize()
	if err := f.Truncate(int64(page)); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, 2*page, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	}()
	if err := bringIn(b); !errors.Is(err, unix.EFAULT) {
		t.Errorf("memory of which half is not there: %v", err)
	}
	if err := bringIn(b[:page]); err != nil {
		t.Error(err)
	}
}
