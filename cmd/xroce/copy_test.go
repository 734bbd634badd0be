package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xroce/cmd/xroce/internal/transfer"
)

// randomFile makes a file of random bytes and returns its name and content.
func randomFile(t *testing.T, size int, mode os.FileMode) (string, []byte) {
	t.Helper()
	content := make([]byte, size)
	_, _ = rand.Read(content)
	name := filepath.Join(t.TempDir(), "source.bin")
	if err := os.WriteFile(name, content, mode); err != nil {
		t.Fatal(err)
	}
	return name, content
}

// onlyFiles fails the test unless the directory has exactly these entries.
func onlyFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s has %q, not %q", dir, got, want)
	}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	server := b.start(t, "serve", "-d", "xr1", "--insecure", "--dir", dir, "--overwrite",
		"--mode-mask", "0777")
	server.listenPort(t)
	for _, c := range []struct {
		size       int
		mode       os.FileMode
		path, want string
	}{
		{0, 0o644, "empty", "empty"},
		{1, 0o600, "", "source.bin"},
		{transfer.ChunkSize, 0o640, "sub", "sub/source.bin"},
		{transfer.ChunkSize + 1, 0o755, "sub/named", "sub/named"},
		{transfer.Slots * transfer.ChunkSize, 0o444, "full", "full"},
		{3*transfer.Slots*transfer.ChunkSize + 12345, 0o644, "sub/", "sub/source.bin"},
		{100, 0o644, "full", "full"}, // over what is there
	} {
		name, content := randomFile(t, c.size, c.mode)
		i := b.run(t, "copy", name, "192.0.2.1:"+c.path, "-d", "xr2")
		if i.code != exitOK || !i.quiet() {
			t.Fatalf("%d bytes to %q: code %d, stderr %s", c.size, c.path, i.code, i.stderr)
		}
		contains(t, i.stdout, "copied "+c.want+" to 192.0.2.1", fmt.Sprintf("%d bytes", c.size))
		got, err := os.ReadFile(filepath.Join(dir, c.want))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes to %q: differs, %v", c.size, c.path, err)
		}
		info, err := os.Stat(filepath.Join(dir, c.want))
		if err != nil || info.Mode() != c.mode {
			t.Errorf("%q: mode %v, %v", c.path, info.Mode(), err)
		}
	}
	server.cancel()
	if server.wait(t); server.code != exitOK {
		t.Errorf("server: code %d", server.code)
	}
	contains(t, server.stdout, "received empty", "received sub/named", "7 files")
	onlyFiles(t, dir, "empty", "full", "source.bin", "sub")
	onlyFiles(t, filepath.Join(dir, "sub"), "named", "source.bin")
}

func TestCopyJSONOnce(t *testing.T) {
	b, _ := simBench(t)
	dir := t.TempDir()
	server := b.start(t, "serve", "--once", "-j", "-d", "xr1", "-p", "7000", "--insecure", "--dir",
		dir)
	name, _ := randomFile(t, 5000, 0o600)
	client := b.run(t, "copy", "--json", name, "192.0.2.1:x", "-d", "xr2",
		"-p", server.listenPort(t))
	if server.wait(t); server.code != exitOK || client.code != exitOK {
		t.Fatalf("server %d %s, client %d %s", server.code, server.stderr, client.code,
			client.stderr)
	}
	var got [2]transferReport
	for n, text := range []string{server.stdout, client.stdout} {
		if err := json.Unmarshal([]byte(text), &got[n]); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	if got[0].SHA256 != got[1].SHA256 || len(got[0].SHA256) != 64 || got[0].Bytes != 5000 ||
		got[1].Bytes != 5000 || got[1].Path != "x" {
		t.Errorf("%+v", got)
	}
}

// TestExtensionsFlag has the ends offer different extensions.
func TestExtensionsFlag(t *testing.T) {
	b, _ := simBench(t)
	name, _ := randomFile(t, 5000, 0o600)
	for _, c := range []struct{ server, client, want string }{
		{"", "", "selective_repeat|reorder_window|piggyback_ack"},
		{"all", "selective", "selective_repeat"},
		{"reorder", "", "reorder_window"},
		{"none", "all", "none"},
		{"", "none", "none"},
	} {
		flag := func(args []string, value string) []string {
			if value == "" {
				return args
			}
			return append(args, "--extensions", value)
		}
		serve := []string{
			"serve", "--once", "-j", "-d", "xr1", "--insecure", "--dir", t.TempDir(),
		}
		server := b.start(t, flag(serve, c.server)...)
		copyTo := []string{
			"copy", "-j", name, "192.0.2.1:x", "-d", "xr2", "-p", server.listenPort(t),
		}
		client := b.run(t, flag(copyTo, c.client)...)
		server.wait(t)
		for end, i := range map[string]*invocation{"server": server, "client": client} {
			var got transferReport
			if err := json.Unmarshal([]byte(i.stdout), &got); err != nil || i.code != exitOK {
				t.Fatalf("%+v: %s: code %d, %v, %s", c, end, i.code, err, i.stderr)
			}
			if got.Extensions != c.want {
				t.Errorf("%+v: %s has %s", c, end, got.Extensions)
			}
		}
	}
	i := b.run(t, "copy", name, "192.0.2.1:x", "--extensions", "some")
	if i.code != exitUsage {
		t.Errorf("unknown extensions: code %d", i.code)
	}
	contains(t, i.stderr, "all, selective, reorder, piggyback, none")
}

func TestCopyRefusals(t *testing.T) {
	b, _ := simBench(t)
	name, _ := randomFile(t, 100, 0o600)
	outside := t.TempDir()
	for _, c := range []struct {
		file, path string
		want       string
	}{
		{name, "missing/x", "create missing/x: no such file or directory"},
		{name, "out/x", "create out/x"}, // a symbolic link that leads out
		{name, ".x", "--dotfiles"},
	} {
		dir := t.TempDir()
		if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		server := b.start(t, "serve", "--once", "-d", "xr1", "--insecure", "--dir", dir)
		server.listenPort(t)
		i := b.run(t, "copy", c.file, "192.0.2.1:"+c.path, "-d", "xr2")
		if server.wait(t); i.code != exitFailure || server.code != exitFailure {
			t.Errorf("%s: client %d, server %d", c.path, i.code, server.code)
		}
		contains(t, i.stderr, c.want, "was not copied")
		onlyFiles(t, outside)
		onlyFiles(t, dir, "out")
	}
	if i := b.run(t, "copy", filepath.Dir(name), "192.0.2.1:"); i.code != exitFailure ||
		!strings.Contains(i.stderr, "no regular file") {
		t.Errorf("directory: code %d, %s", i.code, i.stderr)
	}
	if i := b.run(t, "copy", "nothing-there", "192.0.2.1:"); i.code != exitFailure {
		t.Errorf("missing file: code %d", i.code)
	}
	serve := []string{"serve", "-d", "xr1", "--insecure", "--dir", "nothing-there"}
	if i := b.run(t, serve...); i.code != exitFailure {
		t.Errorf("missing directory: code %d", i.code)
	}
}
