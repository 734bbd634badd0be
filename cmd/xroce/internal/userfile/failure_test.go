package userfile

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFailed: what may not be done is a Failure, and says what it said; all else stays as it is.
func TestFailed(t *testing.T) {
	for _, errno := range []error{unix.EACCES, unix.EPERM} {
		err := fmt.Errorf("a: %w", &fs.PathError{Op: "open", Path: "b", Err: errno})
		var failure Failure
		got := Failed(err)
		if !errors.As(got, &failure) || !errors.Is(got, errno) || got.Error() != err.Error() {
			t.Errorf("%v became %v", err, got)
		}
	}
	for _, err := range []error{nil, unix.ENOENT, unix.EOPNOTSUPP} {
		if got := Failed(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}
