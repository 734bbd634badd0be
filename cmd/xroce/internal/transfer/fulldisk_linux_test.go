package transfer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk/xsktest"
)

// TestRootPartsGiveInodes: where what is kept of files has the last inodes of a file system, as a
// stranger can bring about, it makes room for a file and for a directory, though bytes are free.
func TestRootPartsGiveInodes(t *testing.T) {
	xsktest.NeedRoot(t)
	for name, asks := range map[string]func(*Store) error{
		"file": func(s *Store) error {
			_, err := put(s, message{Path: "x", Name: "n", Size: 1}, "1")
			return err
		},
		"directory": func(s *Store) error { return s.makeDir(t.Context(), "x") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			const inodes = 5 // of them one is the directory's
			must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=4m,nr_inodes=", inodes)))
			s, err := OpenStore(dir, StoreConfig{Keep: time.Hour})
			must(t, err)
			defer func() { must(t, errors.Join(s.Close(), unix.Unmount(dir, 0))) }()
			leaveParts(t, s, hostOf("192.0.2.1"), "a", "b", "c")
			must(t, os.WriteFile(filepath.Join(dir, "other"), nil, 0o600))
			must(t, asks(s))
			if n := len(s.kept); n != 2 || s.files != 1+n {
				t.Errorf("%d files count, of which %d are parts", s.files, n)
			}
		})
	}
}
