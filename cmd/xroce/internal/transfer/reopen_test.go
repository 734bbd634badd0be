package transfer

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPartThatCannotBeOpenedCounts: a part stays in the account when there is too little of
// something just now to open it, and its sender goes on with it the next time.
func TestPartThatCannotBeOpenedCounts(t *testing.T) {
	s, _, _ := store(t, StoreConfig{Keep: time.Hour})
	leaveParts(t, s, hostOf("192.0.2.1"), "a", "b")
	again := func() (*partial, error) {
		o := &message{Path: "a", Name: "n", Size: 10}
		return s.create(t.Context(), o, hostOf("192.0.2.1"))
	}
	for _, tooFew := range []error{unix.ENOLCK, unix.EMFILE} {
		s.lock = func(*os.File) error { return tooFew }
		if _, err := again(); !errors.Is(err, tooFew) {
			t.Errorf("%v", err)
		}
		if len(s.kept) != 2 || s.files != 2 || s.total != 20 || s.missing.sum() != 0 ||
			len(s.coming) != 0 {
			t.Errorf("%v: %d are kept, %d files, %d bytes, %d missing, %d are coming", tooFew,
				len(s.kept), s.files, s.total, s.missing.sum(), len(s.coming))
		}
	}
	s.lock = lock
	p, err := again()
	must(t, err)
	if p.held != 5 || len(s.kept) != 1 || s.files != 2 {
		t.Errorf("%d bytes are held, %d are kept, %d files", p.held, len(s.kept), s.files)
	}
	must(t, errors.Join(p.close(), s.Close()))
}
