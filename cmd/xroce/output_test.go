package main

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk/xsktest/timeout"
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

// TestOutputStuck: whether results are missing is known while somebody does not take them.
func TestOutputStuck(t *testing.T) {
	pipe := newStoppedReader()
	out := &output{w: pipe}
	written := make(chan error, 1)
	go func() {
		_, err := out.Write([]byte("taken"))
		if err == nil {
			_, err = out.Write([]byte("not taken"))
		}
		written <- err
	}()
	<-pipe.stuck
	known := make(chan error, 1)
	go func() { known <- out.lost() }()
	select {
	case err := <-known:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(timeout.Scaled(time.Minute)):
		t.Error("it waits for the write")
	}
	close(pipe.closed)
	if err := <-written; !errors.Is(err, io.ErrClosedPipe) || !errors.Is(out.lost(), err) {
		t.Errorf("%v, and lost is %v", err, out.lost())
	}
}
