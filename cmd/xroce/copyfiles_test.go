package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCopyOfSeveral files, of which one is there already: the others are sent.
func TestCopyOfSeveral(t *testing.T) {
	b, _ := simBench(t)
	dir, from := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	server := b.start(t, "serve", "-d", "xr1", "--insecure", "--dir", dir)
	server.listenPort(t)
	var names []string
	for n := range 3 {
		name := filepath.Join(from, fmt.Sprint("f", n))
		if err := os.WriteFile(name, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	copyTo := []string{"copy", "-d", "xr2", "--json"}
	i := b.run(t, append(copyTo, names[1], "192.0.2.1:sub/")...)
	i.exited(t, exitOK)
	i = b.run(t, append(append(copyTo, names...), "192.0.2.1:sub")...)
	i.exited(t, exitFailure)
	contains(t, i.stderr, "f1 was not copied", "already exists", "1 of 3 files were not copied")
	decoder, documents := json.NewDecoder(strings.NewReader(i.stdout)), []map[string]any{}
	for {
		var d map[string]any
		if err := decoder.Decode(&d); err != nil {
			break
		}
		documents = append(documents, d)
	}
	if len(documents) != 3 || documents[0]["path"] != "sub/f0" ||
		documents[1]["path"] != "sub/f2" || documents[2]["files"] != 2.0 ||
		documents[2]["failed"] != 1.0 {
		t.Errorf("%s", i.stdout)
	}
	onlyFiles(t, filepath.Join(dir, "sub"), "f0", "f1", "f2")
}

// TestCopyOfDirectories: one becomes PATH, or goes below it.
func TestCopyOfDirectories(t *testing.T) {
	b, _ := simBench(t)
	dir, from := t.TempDir(), filepath.Join(t.TempDir(), "tree")
	err := errors.Join(os.MkdirAll(filepath.Join(from, "a", "b"), 0o755),
		os.WriteFile(filepath.Join(from, "a", "b", "c"), []byte("c"), 0o644),
		os.WriteFile(filepath.Join(from, ".d"), []byte("d"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	server := b.start(t, "serve", "-d", "xr1", "--insecure", "--dir", dir, "--dotfiles")
	server.listenPort(t)
	for _, c := range []struct{ flags, from, path, want string }{
		{"-r", from, "", "tree/a/b/c"},
		{"-r", from, "as", "as/a/b/c"},
		{"-r", from, "as/", "as/tree/a/b/c"},
		{"-r --dotfiles", from + "/.", "dots", "dots/.d"},
	} {
		args := append(append([]string{"copy", "-d", "xr2"}, strings.Fields(c.flags)...), c.from,
			"192.0.2.1:"+c.path)
		i := b.run(t, args...)
		i.exited(t, exitOK)
		if _, err := os.Stat(filepath.Join(dir, c.want)); err != nil {
			t.Errorf("%s to %q: %v", c.flags, c.path, err)
		}
		if hidden := strings.Contains(i.stderr, "begins with a dot"); hidden != (c.flags == "-r") {
			t.Errorf("%s: %s", c.flags, i.stderr)
		}
		contains(t, i.stdout, " files, ")
	}
	i := b.run(t, "copy", "-d", "xr2", from, "192.0.2.1:")
	i.exited(t, exitFailure)
	contains(t, i.stderr, "no regular file")
}

// TestCopyOfStandardInput is one file, and needs a name.
func TestCopyOfStandardInput(t *testing.T) {
	b, _ := simBench(t)
	dir := t.TempDir()
	server := b.start(t, "serve", "-d", "xr1", "--insecure", "--dir", dir)
	server.listenPort(t)
	b.change = func(a *app) { a.stdin = io.LimitReader(strings.NewReader("words"), 5) }
	i := b.run(t, "copy", "-d", "xr2", "-", "192.0.2.1:name")
	i.exited(t, exitOK)
	contains(t, i.stdout, "copied name to 192.0.2.1: 5 bytes")
	if got, err := os.ReadFile(filepath.Join(dir, "name")); string(got) != "words" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	i = b.run(t, "copy", "-d", "xr2", "-", "192.0.2.1:sub")
	i.exited(t, exitFailure)
	contains(t, i.stderr, "sub: file already exists")
	for _, args := range []string{"- 192.0.2.1:", "- 192.0.2.1:x/", "- - 192.0.2.1:x"} {
		i := b.run(t, append([]string{"copy", "-d", "xr2"}, strings.Fields(args)...)...)
		i.exited(t, exitUsage)
	}
}
