package transfer

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// holder in the environment makes the test binary a server that has begun to receive a
// file in that directory, and waits to be killed.
const holder = "XROCE_TEST_HOLDER"

func TestMain(m *testing.M) {
	dir := os.Getenv(holder)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := OpenStore(dir, StoreConfig{})
	if err == nil {
		half := &message{Path: "sub/x", Name: "n", Mode: 0o200, Size: 1}
		_, err = s.create(context.Background(), half, Sender{})
	}
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("ready\n")
	_, _ = os.Stdin.Read(make([]byte, 1)) // for ever: until the test ends
}

// TestLeftOvers of a server that was killed are removed, and nothing else is: not what a
// living server has, nor what only looks like it.
func TestLeftOvers(t *testing.T) {
	s, dir, outside := store(t, StoreConfig{})
	own, err := s.create(t.Context(), &message{Path: "mine", Name: "n", Size: 1}, Sender{})
	if err != nil {
		t.Fatal(err)
	}
	form := partPrefix + strings.Repeat("A", 26) + partSuffix
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, form)); err != nil {
		t.Fatal(err)
	}
	likeIt := []string{
		".x.AAAAAAAA.part", strings.ToLower(form), form + "x", "x" + form,
		partPrefix + strings.Repeat("A", 25) + partSuffix,
	}
	for _, name := range likeIt {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outsiders := filepath.Join(outside, form)
	if err := os.WriteFile(outsiders, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir) + snapshot(t, outside)

	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), holder+"="+dir)
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Clear(t.Context()); n != 0 || err != nil {
		t.Errorf("of a living server: %d removed, %v", n, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if after := snapshot(t, dir) + snapshot(t, outside); after == before {
		t.Error("the child left nothing")
	}
	if n, err := s.Clear(t.Context()); n != 1 || err != nil {
		t.Errorf("of a dead server: %d removed, %v", n, err)
	}
	if after := snapshot(t, dir) + snapshot(t, outside); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
	if err := own.close(); err != nil {
		t.Error(err)
	}
}
