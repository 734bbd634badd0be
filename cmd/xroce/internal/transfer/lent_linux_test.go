package transfer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLentFile: a file that another process has a lease of, as file servers do, is waited for, and
// no longer than the transfer may take.
func TestLentFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	must(t, os.WriteFile(name, []byte("text"), 0o600))
	holder, err := os.OpenFile(name, os.O_RDWR, 0)
	must(t, err)
	defer holder.Close()
	if _, err := unix.FcntlInt(holder.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skip("the file system has no leases: ", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newSender(ended, SendConfig{File: name}); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait any more: %v", err)
	}
	opened := make(chan error, 1)
	go func() {
		s, err := newSender(t.Context(), SendConfig{File: name})
		if err == nil {
			s.close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Errorf("it did not wait: %v", err)
	case <-time.After(3 * lentLook): // it would not have waited
	}
	must(t, holder.Close())
	must(t, <-opened)
}
