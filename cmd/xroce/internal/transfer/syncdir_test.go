package transfer

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMadeDirectoryIsOnDisk: one that could not be brought there is not found when it is asked for
// again, and does not count.
func TestMadeDirectoryIsOnDisk(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{MaxFiles: 1})
	fails, synced := true, 0
	s.sync = func(*os.File) error {
		if synced++; fails {
			return unix.EIO
		}
		return nil
	}
	for range 2 {
		if err := s.makeDir(t.Context(), "new"); !errors.Is(err, unix.EIO) || s.files != 0 {
			t.Errorf("%v, and %d files count", err, s.files)
		}
	}
	fails = false
	must(t, s.makeDir(t.Context(), "new"))
	if got := snapshot(t, dir); synced != 3 || s.files != 1 || !strings.Contains(got, "new d") {
		t.Errorf("synced %d times, %d files count: %s", synced, s.files, got)
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
