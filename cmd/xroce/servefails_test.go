package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"xroce/cmd/xroce/internal/peer"
	"xroce/cmd/xroce/internal/transfer"
)

// TestServeOnceDirectory: a server that is there for one client, and cannot make its directory,
// says so and fails.
func TestServeOnceDirectory(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	dir, from := t.TempDir(), filepath.Join(t.TempDir(), "tree")
	for _, err := range []error{
		os.Mkdir(from, 0o755),
		os.WriteFile(filepath.Join(from, "f"), []byte("f"), 0o600),
		os.WriteFile(filepath.Join(dir, "tree"), nil, 0o600), // has its name
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	server := b.start(t, "serve", "--once", "-d", "xr1", "--insecure", "--dir", dir)
	server.listenPort(t)
	b.run(t, "copy", "-r", "-d", "xr2", from, "192.0.2.1:").exited(t, exitFailure)
	server.wait(t).exited(t, exitFailure)
	contains(t, server.stderr, "make directory tree")
}

// TestServeOnceGivesUp: a server that is there for one client, and waits no longer for what that
// sends next, has failed; not so where the client went.
func TestServeOnceGivesUp(t *testing.T) {
	for err, fails := range map[error]bool{peer.ErrSilence: true, transfer.ErrLost: false} {
		a := newApp(nil, nil)
		a.logger = slog.New(slog.DiscardHandler)
		s := newServer(a, nil, transfer.ReceiveConfig{}, true)
		s.left("192.0.2.2", fmt.Errorf("between files: %w", err), false)
		if (s.err != nil) != fails {
			t.Errorf("%v: %v", err, s.err)
		}
	}
}

// TestCopyOfOneName: two files that would have one name at the server are not sent: the second
// would take the place of the first.
func TestCopyOfOneName(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	dir, from := t.TempDir(), t.TempDir()
	var names []string
	for _, d := range []string{"a", "b"} {
		name := filepath.Join(from, d, "notes.txt")
		if err := os.Mkdir(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("of "+d), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	server := b.start(t, "serve", "-d", "xr1", "--insecure", "--overwrite", "--dir", dir)
	server.listenPort(t)
	i := b.run(t, "copy", "-d", "xr2", names[0], names[1], "192.0.2.1:")
	i.exited(t, exitUsage)
	contains(t, i.stderr, names[0], names[1], "one name")
	onlyFiles(t, dir)
}
