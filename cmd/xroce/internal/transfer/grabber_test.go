package transfer

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestGrabbers lock a file as soon as it is made, as any user of the host can who may read
// it: another one is made, and nothing stays behind of those.
func TestGrabbers(t *testing.T) {
	for _, c := range []struct {
		grabbed int
		by      error
		ok      bool
	}{
		{tries - 1, unix.EWOULDBLOCK, true},
		{tries, unix.EWOULDBLOCK, false},
		{1, unix.ENOLCK, false},
	} {
		s, dir, _ := store(t, StoreConfig{})
		before := snapshot(t, dir)
		made := 0
		s.lock = func(file *os.File) error {
			if made++; made <= c.grabbed {
				return c.by
			}
			return lock(file)
		}
		p, err := s.create(t.Context(), &message{Path: "x", Name: "n", Size: 1}, Sender{})
		if (err == nil) != c.ok || made != min(c.grabbed+1, tries) && c.by == unix.EWOULDBLOCK {
			t.Errorf("%+v: %d made, %v", c, made, err)
		}
		if err == nil {
			if got := strings.Count(snapshot(t, dir), partSuffix); got != 1 {
				t.Errorf("%+v: %d partial files", c, got)
			}
			if err := p.close(); err != nil {
				t.Error(err)
			}
		}
		if after := snapshot(t, dir); after != before {
			t.Errorf("%+v: before:\n%safter:\n%s", c, before, after)
		}
	}
}
