package main

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// A full writer has no room, as a file on a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, unix.ENOSPC }

// TestLostResults: a command whose results could not be written has failed, and says so,
// in whatever form they were.
func TestLostResults(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"--help"}} {
		stderr := new(bytes.Buffer)
		a := newApp(full{}, stderr)
		a.runtime = ""
		if code := a.run(t.Context(), args); code != exitFailure {
			t.Errorf("%v: code %d", args, code)
		}
		contains(t, stderr.String(), "no space left on device")
	}
}
