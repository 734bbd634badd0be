package transfer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestModeIsFoundFirst: which mode a file gets is found out before anything has come of it, and not
// when a failure of that would have all of it come again.
func TestModeIsFoundFirst(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{})
	before := unix.Umask(0o027)
	defer unix.Umask(before)
	m := &message{Path: "x", Name: "n", Size: 5, Mode: 0o644}
	p, err := s.create(t.Context(), m, Sender{})
	must(t, err)
	must(t, p.add([]byte("12345")))
	unix.Umask(0o077)
	must(t, errors.Join(p.commit(), p.close()))
	info, err := os.Stat(filepath.Join(dir, "x"))
	must(t, err)
	if info.Mode() != 0o640 {
		t.Errorf("it has %s", info.Mode())
	}
}

// TestModeFileIsCleared: another server that begins in the same directory takes the file by which a
// mode is found for left over, and no file is lost for that.
func TestModeFileIsCleared(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			other, err := OpenStore(dir, StoreConfig{})
			if err == nil {
				_, err = other.Clear(ctx)
				err = errors.Join(err, other.Close())
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	}()
	at, err := s.walk(".")
	must(t, err)
	p := &partial{store: s, place: place{dir: at}, mode: 0o600}
	for range 5000 {
		if _, err := p.allowed(); err != nil {
			t.Error(err)
			break
		}
	}
	cancel()
	<-done
	must(t, at.Close())
}
