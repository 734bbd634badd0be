package transfer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// leave leaves a partial file in a directory.
func leave(t *testing.T, dir *os.File) {
	t.Helper()
	name := partPrefix + strings.Repeat("A", 26) + partSuffix
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err == nil {
		err = unix.Close(fd)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestLeftOversOfAnyDepth: others may make directories within directories without end.
// A server looks as deep as files can have been received to, so that neither its memory
// nor its descriptors are used up by that.
func TestLeftOversOfAnyDepth(t *testing.T) {
	s, _, _ := store(t, StoreConfig{})
	at, err := openDir(s.dir, ".")
	if err != nil {
		t.Fatal(err)
	}
	const deepest = maxPath / 2 // the path of which is as long as a peer may name
	path := "dd" + strings.Repeat("/d", deepest-1)
	for depth := range deepest + 2 {
		name := path[:2-min(depth, 1)]
		if depth == deepest || depth == deepest+1 {
			leave(t, at)
		}
		if err := unix.Mkdirat(int(at.Fd()), name, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := openDir(at, name)
		at.Close()
		if err != nil {
			t.Fatal(err)
		}
		at = next
	}
	at.Close()
	if _, err := put(s, message{Path: path, Name: "n"}, "x"); err != nil {
		t.Errorf("of a peer: %v", err)
	}
	if n, err := s.Clear(t.Context()); n != 1 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
}

// TestClearingEnds when it is told to, and does not fail because of a directory that
// others remove meanwhile.
func TestClearingEnds(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{})
	leave(t, s.dir)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := s.Clear(ended); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d removed, %v", n, err)
	}
	gone, err := openDir(s.dir, ".hidden")
	if err == nil {
		err = os.Remove(filepath.Join(dir, ".hidden"))
	}
	if err != nil {
		t.Fatal(err)
	}
	var c clearing
	if c.clear(t.Context(), gone, maxPath); c.err != nil {
		t.Error(c.err)
	}
	if n, err := s.Clear(t.Context()); n != 1 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
}
