package dump

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenWireWithoutFiles: too many open files are no missing interface.
func TestOpenWireWithoutFiles(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: 1, Max: before.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	w, err := OpenWire("lo", nil, 0)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if w != nil || !errors.Is(err, unix.EMFILE) ||
		!strings.HasPrefix(err.Error(), "look up interface lo: ") {
		t.Errorf("%v", err)
	}
	if _, err := OpenWire("no-such-interf", nil, 0); err == nil ||
		!strings.Contains(err.Error(), "and the kernel neither") {
		t.Errorf("%v", err)
	}
}
