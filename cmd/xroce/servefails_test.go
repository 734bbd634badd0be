package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"xroce/cmd/xroce/internal/peer"
	"xroce/cmd/xroce/internal/transfer"
	"xroce/engine"
	"xroce/engine/sim"
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
	b, _ := simBench(t)
	station := b.station(t, "xr1")
	for err, fails := range map[error]bool{peer.ErrSilence: true, transfer.ErrLost: false} {
		a := newApp(nil, nil)
		a.logger = slog.New(slog.DiscardHandler)
		s := newServer(a, station, transfer.ReceiveConfig{}, true)
		s.left("192.0.2.2", fmt.Errorf("between files: %w", err), false)
		if (s.err != nil) != fails {
			t.Errorf("%v: %v", err, s.err)
		}
	}
}

// TestServeOnceIsCutOff: a server that is there for one client has failed when the network, or its
// own device, ends while that client may have more.
func TestServeOnceIsCutOff(t *testing.T) {
	for name, cut := range map[string]func(device *engine.Device, network *sim.Network) error{
		"network": func(_ *engine.Device, n *sim.Network) error {
			return n.SetFaults(sim.Faults{Drop: 1})
		},
		"device": func(d *engine.Device, _ *sim.Network) error { return d.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits most of the time
			b, network := simBench(t)
			device := b.kept()
			server := b.start(t, "serve", "--once", "-d", "xr1", "--insecure", "--dir", t.TempDir())
			server.listenPort(t)
			link := b.dial(t, "xr8")
			offers(t, link, 0)
			if err := link.Conn.PostSend(chunk(nil)); err != nil {
				t.Fatal(err)
			}
			say(t, link, fmt.Sprintf(`{"sha256":"%x"}`, sha256.Sum256(nil)))
			contains(t, hear(link), "sha256")
			if err := cut(device("xr1"), network); err != nil {
				t.Fatal(err)
			}
			server.wait(t).exited(t, exitFailure)
		})
	}
}

// TestCopyOfOneName: of what would have one name at the server nothing is sent: the second would
// take the place of the first. A directory without a name of its own has those that are in it.
func TestCopyOfOneName(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	dir, from := t.TempDir(), t.TempDir()
	for _, name := range []string{
		"a/notes", "b/notes", "a/d/f", "b/d/f", "a/.hidden", "c/.hidden",
	} {
		name = filepath.Join(from, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	server := b.start(t, "serve", "-d", "xr1", "--insecure", "--overwrite", "--dotfiles",
		"--dir", dir)
	server.listenPort(t)
	for _, c := range []struct {
		files  [2]string
		hidden bool
		exit   int
	}{
		{[2]string{"a/notes", "b/notes"}, false, exitUsage},
		{[2]string{"a/d", "b/d"}, false, exitUsage},
		{[2]string{"a/.", "b/d"}, false, exitUsage},
		{[2]string{"a/.", "b/notes"}, false, exitUsage},
		{[2]string{"a/.", "b/."}, false, exitUsage},
		{[2]string{"a/.", "c/."}, true, exitUsage},
		{[2]string{"a/.", "c/."}, false, exitOK},
		{[2]string{"a/d", "b/notes"}, false, exitOK},
	} {
		line := []string{"copy", "-r", "-d", "xr2"}
		if c.hidden {
			line = append(line, "--dotfiles")
		}
		for _, f := range c.files {
			line = append(line, from+"/"+f)
		}
		i := b.run(t, append(line, "192.0.2.1:")...)
		i.exited(t, c.exit)
		if c.exit != exitUsage {
			continue
		}
		contains(t, i.stderr, c.files[0], c.files[1], "one name")
		onlyFiles(t, dir)
	}
}
