package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine/sim"
)

// TestFilesLargerThanTheySay: those that the kernel makes while they are read have a size
// of 0. Nothing of one is sent, and nobody hears that it was.
func TestFilesLargerThanTheySay(t *testing.T) {
	r := newRig(t, 0, sim.Faults{})
	r.file = "/proc/version"
	_, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{}, t.Context(),
		t.Context())
	if !errors.Is(sendErr, ErrChanged) || receiveErr == nil {
		t.Errorf("sender %v, receiver %v", sendErr, receiveErr)
	}
	r.empty(t)
}

// TestNoRegularFileIsOpened: what is no regular file is refused without being opened, which may
// do something already.
func TestNoRegularFileIsOpened(t *testing.T) {
	dir := t.TempDir()
	fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "file")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, opens := range map[string]bool{fifo: false, file: true} {
		watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.InotifyAddWatch(watch, name, unix.IN_OPEN); err != nil {
			t.Fatal(err)
		}
		f, _, err := openSource(t.Context(), name)
		if (err == nil) != opens {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			f.Close()
		}
		var events [1024]byte
		if n, err := unix.Read(watch, events[:]); n > 0 != opens {
			t.Errorf("%s: opened %v, want %v (%v)", name, n > 0, opens, err)
		}
		unix.Close(watch)
	}
}
