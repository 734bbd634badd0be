package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/transfer"
)

// A stuckWriter tells of the first Write, which does not end.
type stuckWriter chan struct{}

func (w stuckWriter) Write([]byte) (int, error) {
	close(w)
	select {}
}

// aFile makes a file.
func aFile(t *testing.T, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestServeForWhoReadsNothing: a program that takes nothing from the standard output of a server,
// as a pager that nobody looks at, holds up no client. One signal ends the server, which says that
// results are missing.
func TestServeForWhoReadsNothing(t *testing.T) {
	b, _ := simBench(t)
	nobody := make(stuckWriter, 1)
	c := b
	c.change = func(a *app) { a.stdout, a.dumpPatience = nobody, time.Millisecond }
	server := c.start(t, "serve", "-d", "xr1", "--dir", t.TempDir(), "--insecure")
	server.listenPort(t)
	name := aFile(t, []byte("x"))
	for n := range maxOfSource + 1 { // of connections that would not end
		b.run(t, "copy", "-d", "xr2", "--retry", "0", name, fmt.Sprint("192.0.2.1:f", n)).
			exited(t, exitOK)
	}
	<-nobody
	server.cancel()
	server.wait(t).exited(t, exitFailure)
	contains(t, server.stderr, errUntaken.Error())
}

// TestCopyForWhoReadsNothing: one signal ends a command whose file nobody takes.
func TestCopyForWhoReadsNothing(t *testing.T) {
	b, _ := simBench(t)
	dir := filepath.Dir(aFile(t, bytes.Repeat([]byte("x"), 1<<20)))
	server := b.start(t, "serve", "-d", "xr1", "--dir", dir, "--insecure", "--allow-read")
	server.listenPort(t)
	nobody := make(stuckWriter, 1)
	c := b
	c.change = func(a *app) { a.stdout, a.dumpPatience = nobody, time.Millisecond }
	i := c.start(t, "copy", "-d", "xr2", "192.0.2.1:file", "-")
	<-nobody
	i.cancel()
	i.wait(t).exited(t, exitInterrupted)
	server.cancel()
	server.wait(t).exited(t, exitOK)
}

// TestResultsAreBounded: so many results wait for standard output, and what there is no room for is
// told of, and is a failure.
func TestResultsAreBounded(t *testing.T) {
	r := newResults(new(app))
	for range maxResults {
		if !r.add("192.0.2.2", transfer.Result{Path: "x"}) {
			t.Fatal("there is no room")
		}
	}
	if r.add("192.0.2.2", transfer.Result{Path: "x"}) {
		t.Error("there is no end of room")
	}
	r.stdout = io.Discard
	go r.print()
	if err := r.end(t.Context(), func() {}); !errors.Is(err, errUntaken) {
		t.Errorf("it ends with %v", err)
	}
}
