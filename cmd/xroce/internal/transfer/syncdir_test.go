package transfer

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMadeDirectoryIsOnDisk: one that could not be brought there is not found when it is asked for
// again, and does not count.
func TestMadeDirectoryIsOnDisk(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{MaxFiles: 1})
	fails, synced := true, 0
	s.sync = func(f *os.File) error {
		if synced++; fails {
			return &fs.PathError{Op: "sync", Path: f.Name(), Err: unix.EIO}
		}
		return nil
	}
	for range 2 {
		err := s.makeDir(t.Context(), "new")
		if !errors.Is(err, unix.EIO) || strings.Contains(err.Error(), dir) || s.files != 0 {
			t.Errorf("%v, and %d files count", err, s.files)
		}
	}
	fails = false
	must(t, s.makeDir(t.Context(), "new"))
	if got := snapshot(t, dir); synced != 3 || s.files != 1 || !strings.Contains(got, "new d") {
		t.Errorf("synced %d times, %d files count: %s", synced, s.files, got)
	}
}

// TestFewAreDroppedForAName: what is kept of files makes room where there is none for a name, but
// not all of it where that does not help.
func TestFewAreDroppedForAName(t *testing.T) {
	s, _, _ := store(t, StoreConfig{Keep: time.Hour})
	leaveParts(t, s, hostOf("192.0.2.1"), "a", "b", "c", "d")
	s.sync = func(*os.File) error { return unix.ENOSPC }
	if err := s.makeDir(t.Context(), "new"); !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	if n := len(s.kept); n != 4-maxDropped || s.files != n {
		t.Errorf("%d parts are kept, %d files count", n, s.files)
	}
}

// TestSyncOfDirectories: some file systems have none, which is no reason to deny a file
// that is there. An error of one that has it is told, and that the file is there.
func TestSyncOfDirectories(t *testing.T) {
	for _, c := range []struct {
		file, dir, want error
		text            string
		there           bool
	}{
		{dir: unix.EINVAL, there: true},
		{dir: unix.EIO, want: unix.EIO, text: "x has its name, which may be lost", there: true},
		{file: unix.EINVAL, want: unix.EINVAL, text: "sync x"},
	} {
		s, dir, _ := store(t, StoreConfig{})
		s.sync = func(f *os.File) error {
			err := c.file
			if info, statErr := f.Stat(); statErr == nil && info.IsDir() {
				err = c.dir
			}
			if err == nil {
				return nil
			}
			return &fs.PathError{Op: "sync", Path: f.Name(), Err: err}
		}
		_, err := put(s, message{Path: "x", Name: "n"}, "x")
		if !errors.Is(err, c.want) || err != nil && (!strings.Contains(err.Error(), c.text) ||
			strings.Contains(err.Error(), dir)) { // where that is does not concern the peer
			t.Errorf("%+v: %v", c, err)
		}
		if there := strings.Contains("\n"+snapshot(t, dir), "\nx "); there != c.there {
			t.Errorf("%+v: the file is there: %t", c, there)
		}
	}
}
