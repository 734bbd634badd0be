package xsk_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/xsk"
)

// TestOpenWithoutFiles: a process that has no descriptor left is told that, and not that
// there is no such interface.
func TestOpenWithoutFiles(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: 1, Max: before.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	byName, nameErr := xsk.Open(xsk.Config{Interface: "lo", RxFrames: 64, TxFrames: 64})
	byIndex, indexErr := xsk.Open(xsk.Config{Ifindex: 1, RxFrames: 64, TxFrames: 64})
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"xsk: look up interface lo (": nameErr, "xsk: look up interface (": indexErr,
	} {
		if !errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENODEV) {
			t.Errorf("%v, want EMFILE", err)
			continue
		}
		if !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "(ulimit -n)") {
			t.Errorf("%q, want %q and what to do", err, want)
		}
	}
	if byName != nil || byIndex != nil {
		t.Error("a socket was opened")
	}
}
