package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCopyBack has a file sent by the server: only by one that may, to a file that is not there,
// and to standard output, where nothing else is then.
func TestCopyBack(t *testing.T) {
	b, _ := simBench(t)
	token := tokenFile(t)
	for _, allowed := range []bool{false, true} {
		dir, to := t.TempDir(), t.TempDir()
		content := bytes.Repeat([]byte("words\n"), 1000)
		if err := os.WriteFile(filepath.Join(dir, "file"), content, 0o640); err != nil {
			t.Fatal(err)
		}
		args := []string{"serve", "-d", "xr1", "--dir", dir, "--token-file", token}
		if allowed {
			args = append(args, "--allow-read")
		}
		server := b.start(t, args...)
		server.listenPort(t)
		back := func(code int, args ...string) *invocation {
			t.Helper()
			args = append([]string{"copy", "-d", "xr2", "--token-file", token}, args...)
			i := b.run(t, args...)
			i.exited(t, code)
			return i
		}
		if !allowed {
			i := back(exitFailure, "192.0.2.1:file", to)
			contains(t, i.stderr, "serve --allow-read")
			onlyFiles(t, to)
		} else {
			i := back(exitOK, "192.0.2.1:file", to)
			contains(t, i.stdout, "fetched file from 192.0.2.1: 6000 bytes")
			i = back(exitFailure, "192.0.2.1:file", filepath.Join(to, "file"))
			contains(t, i.stderr, "already exists (copy --overwrite replaces files)")
			back(exitOK, "--overwrite", "192.0.2.1:file", filepath.Join(to, "file"))
			if i = back(exitOK, "192.0.2.1:file", "-"); i.stdout != string(content) {
				t.Errorf("%d bytes on stdout", len(i.stdout))
			}
			if got, err := os.ReadFile(filepath.Join(to, "file")); !bytes.Equal(got, content) {
				t.Errorf("differs, %v", err)
			}
			onlyFiles(t, to, "file")
			i = back(exitFailure, "192.0.2.1:missing", to)
			contains(t, i.stderr, "no such file")
			for _, wrong := range []string{"192.0.2.1:", "192.0.2.1:x/", "-r 192.0.2.1:x"} {
				back(exitUsage, append(strings.Fields(wrong), to)...)
			}
		}
		server.cancel()
		server.wait(t).exited(t, exitOK)
		contains(t, server.stderr, "file not sent")
	}
}

// TestServeOnceRefuses: a server that is there for one client, and does not send what that asks
// for, says so and fails.
func TestServeOnceRefuses(t *testing.T) {
	b, _ := simBench(t)
	server := b.start(t, "serve", "--once", "-d", "xr1", "--insecure", "--allow-read",
		"--dir", t.TempDir())
	server.listenPort(t)
	b.run(t, "copy", "-d", "xr2", "192.0.2.1:missing", t.TempDir()).exited(t, exitFailure)
	server.wait(t).exited(t, exitFailure)
	contains(t, server.stderr, "no such file")
}
