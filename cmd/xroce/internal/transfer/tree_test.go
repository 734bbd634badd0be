package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// sendTree sends a directory to a server and returns what it told: of each file, "" or why it was
// not sent, and of what was skipped why.
func (r *rig) sendTree(t *testing.T, tree TreeConfig) (told map[string]string, err error) {
	t.Helper()
	told = map[string]string{}
	tree.Sent = func(name string, _ Result, err error) {
		told[name] = ""
		if err != nil {
			told[name] = err.Error()
		}
	}
	tree.Skipped = func(name, why string) { told[name] = why }
	stop := r.listen(t.Context(), ReceiveConfig{})
	c := r.client()
	err = c.SendTree(t.Context(), tree)
	c.Close()
	stop()
	return told, err
}

// TestTree sends what is in a directory and follows nothing out of it.
func TestTree(t *testing.T) {
	r := newRig(t, 0, sim.Faults{})
	dir, outside := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, errors.Join(
		os.MkdirAll(at("sub/deep"), 0o755), os.Mkdir(at("empty"), 0o755),
		os.Mkdir(at(".hidden"), 0o755),
		os.WriteFile(at("a"), []byte("a"), 0o640), os.WriteFile(at("sub/b"), nil, 0o600),
		os.WriteFile(at("sub/deep/c"), []byte("c"), 0o644),
		os.WriteFile(at(".hidden/d"), []byte("d"), 0o600), os.WriteFile(at(".e"), nil, 0o600),
		os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600),
		os.Symlink(outside, at("out")), os.Symlink(filepath.Join(outside, "secret"), at("file")),
		unix.Mkfifo(at("fifo"), 0o600), os.WriteFile(at("\xff"), nil, 0o600),
	))
	told, err := r.sendTree(t, TreeConfig{Dir: dir, Path: "new/tree"})
	must(t, err)
	got := snapshot(t, r.dir)
	for _, want := range []string{
		"new/tree/a -rw-r----- \"a\"\n", "new/tree/sub/b -rw------- \"\"\n",
		"new/tree/sub/deep/c -rw-r--r-- \"c\"\n", "new/tree/empty drwxr-xr-x \"\"\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if strings.Contains(got, "secret") || strings.Contains(got, "new/tree/.") {
		t.Errorf("sent: %s", got)
	}
	for name, want := range map[string]string{
		"a": "", "out": "no regular file", "file": "no regular file", "fifo": "no regular file",
		".hidden": "--dotfiles", ".e": "--dotfiles", "\xff": "not UTF-8",
	} {
		said, ok := told[name]
		if !ok || !strings.Contains(said, want) || want == "" && said != "" {
			t.Errorf("%q: %q, not %q", name, said, want)
		}
	}
	// Again: directories are there, files are not replaced, and hidden ones are refused by name.
	told, err = r.sendTree(t, TreeConfig{Dir: dir, Path: "new/tree", Dotfiles: true})
	must(t, err)
	for name, want := range map[string]string{
		"a": "already exists", "sub/deep/c": "already exists", ".hidden": "begins with a dot",
		".e": "begins with a dot",
	} {
		if said := told[name]; !strings.Contains(said, want) {
			t.Errorf("again, %q: %q, not %q", name, said, want)
		}
	}
	r.settled(t, server)
}

// TestDirectories are made where a peer may have a file, and nowhere else.
func TestDirectories(t *testing.T) {
	s, dir, outside := store(t, StoreConfig{MaxFiles: 2})
	before := snapshot(t, outside)
	for _, c := range []struct {
		path string
		want error
	}{
		{"new", nil},
		{"new", nil},
		{"sub/new", nil},
		{"sub", nil},
		{".", nil},
		{"", ErrPath},
		{"..", ErrPath},
		{"/x", ErrPath},
		{"a/../..", ErrPath},
		{"a//b", ErrPath},
		{"a/", ErrPath},
		{".ssh", ErrPath},
		{"a/.b", ErrPath},
		{"a\nb", ErrPath},
		{partPrefix + strings.Repeat("A", 26) + partSuffix, ErrPath},
		{strings.Repeat("d/", maxDepth) + "d", ErrPath},
		{strings.Repeat("d", maxPath+1), ErrPath},
		{"out/x", unix.ENOTDIR},
		{"tosub/x", unix.ENOTDIR},
		{"file/x", unix.ENOTDIR},
		{"tonew", unix.ENOTDIR},
		{"fifo", unix.ENOTDIR},
	} {
		if err := s.makeDir(t.Context(), c.path); !errors.Is(err, c.want) {
			t.Errorf("%.40q: %v, not %v", c.path, err, c.want)
		}
	}
	if err := s.makeDir(t.Context(), "third"); err == nil ||
		!strings.Contains(err.Error(), "--max-files") {
		t.Errorf("a third directory: %v", err)
	}
	if got := snapshot(t, dir); !strings.Contains(got, "\nnew drwxr-xr-x") ||
		strings.Contains(got, "third") {
		t.Error(got)
	}
	if after := snapshot(t, outside); after != before {
		t.Errorf("outside: %s", after)
	}
}

// TestNamesAreWhole: a file of a tree, and one that is fetched, is not put into a directory that
// has its name.
func TestNamesAreWhole(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	for _, overwrite := range []bool{false, true} {
		r.serve(t, StoreConfig{Overwrite: overwrite, Read: true})
		from, to := t.TempDir(), t.TempDir()
		at := func(dir, name string) string { return filepath.Join(dir, name) }
		must(t, errors.Join(
			os.WriteFile(at(from, "x"), nil, 0o600), os.Mkdir(at(from, "y"), 0o700),
			os.WriteFile(at(from, "y/x"), nil, 0o600),
			os.WriteFile(at(from, "z"), nil, 0o600),
			os.MkdirAll(at(r.dir, "y/x"), 0o700), os.Mkdir(at(r.dir, "x"), 0o700),
			os.WriteFile(at(r.dir, "f"), nil, 0o600), os.MkdirAll(at(to, "f"), 0o700),
		))
		told, err := r.sendTree(t, TreeConfig{Dir: from})
		must(t, err)
		for name, want := range map[string]string{
			"x": "already exists", "y/x": "already exists", "z": "",
		} {
			if said, ok := told[name]; !ok || !strings.Contains(said, want) ||
				want == "" && said != "" {
				t.Errorf("%s: %q, not %q", name, said, want)
			}
		}
		stop := r.listen(t.Context(), ReceiveConfig{})
		c := r.client()
		_, err = c.Fetch(t.Context(), FetchConfig{Path: "f", To: to, Overwrite: overwrite})
		c.Close()
		stop()
		if !errors.Is(err, fs.ErrExist) {
			t.Errorf("fetch: %v", err)
		}
		for _, dir := range []string{at(r.dir, "x"), at(r.dir, "y/x"), at(to, "f")} {
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("%s: %v, %v", dir, entries, err)
			}
		}
	}
}

// TestTreeGoesOn behind a file that fails at the server when its data has begun.
func TestTreeGoesOn(t *testing.T) {
	r := newRig(t, 0, sim.Faults{})
	from := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		must(t, os.WriteFile(filepath.Join(from, name), []byte(name), 0o600))
	}
	r.store.sync = func(f *os.File) error {
		if b, err := os.ReadFile(filepath.Join(r.dir, filepath.Base(f.Name()))); err == nil &&
			string(b) == "b" {
			return unix.EIO
		}
		return nil
	}
	told, err := r.sendTree(t, TreeConfig{Dir: from})
	if err != nil || told["a"] != "" || told["c"] != "" || len(told) != 3 ||
		!strings.Contains(told["b"], unix.EIO.Error()) {
		t.Errorf("%q, %v", told, err)
	}
	if got := snapshot(t, r.dir); !strings.Contains(got, "a ") || !strings.Contains(got, "c ") ||
		strings.Contains(got, "b ") {
		t.Error(got)
	}
}

// TestTreeIsBounded: a tree that is too deep ends.
func TestTreeIsBounded(t *testing.T) {
	r := newRig(t, 0, sim.Faults{})
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", maxDepth)), 0o755))
	if _, err := r.sendTree(t, TreeConfig{Dir: dir}); !errors.Is(err, ErrTree) {
		t.Error(err)
	}
}

// A trickle is a reader that gives little at a time.
type trickle struct{ left []byte }

func (r *trickle) Read(b []byte) (int, error) {
	if len(r.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1000)], r.left)
	r.left = r.left[n:]
	return n, nil
}

// TestReader sends what has no size, of lengths around that of a chunk.
func TestReader(t *testing.T) {
	r := newRig(t, 2*ChunkSize+1, sim.Faults{})
	stop := r.listen(t.Context(), ReceiveConfig{})
	c := r.client()
	for _, n := range []int{0, 1, ChunkSize - 1, ChunkSize, ChunkSize + 1, 2*ChunkSize + 1} {
		name := fmt.Sprint("f", n)
		result, err := c.Send(t.Context(), SendConfig{
			File: name, Path: name, Reader: &trickle{r.content[:n]},
		})
		must(t, err)
		got, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil || !bytes.Equal(got, r.content[:n]) || result.Size != int64(n) {
			t.Errorf("%d bytes: %d, %+v, %v", n, len(got), result, err)
		}
	}
	c.Close()
	must(t, errors.Join(stop()...))
}

// TestReaderIsNotReadAgain: when the connection is lost, the copy fails and says why, and nothing
// is left of it.
func TestReaderIsNotReadAgain(t *testing.T) {
	t.Parallel() // it waits most of the time
	r := newRig(t, 3*Slots*ChunkSize, sim.Faults{})
	r.serve(t, StoreConfig{Keep: 1 << 40})
	stop := r.listen(t.Context(), ReceiveConfig{})
	c := r.client()
	c.Retry = 1 << 40
	_, err := c.Send(t.Context(), SendConfig{
		File: "x", Path: "x", Reader: bytes.NewReader(r.content), Progress: func(int64, int64) {
			must(t, r.network.SetFaults(sim.Faults{Drop: 1}))
		},
	})
	if !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	must(t, r.network.SetFaults(sim.Faults{}))
	c.Close()
	stop()
	r.empty(t)
}

// TestSlowReader: a sender that waits for its input is not taken for one that is gone, and ends
// when it is told to.
func TestSlowReader(t *testing.T) {
	t.Parallel() // it waits most of the time
	r := newRig(t, 0, sim.Faults{})
	hasty := ordinary
	hasty.chunk = timeout.Scaled(time.Second)
	stop := r.listen(t.Context(), ReceiveConfig{patience: hasty})
	c := r.client()
	c.patience = hasty
	from, to := io.Pipe()
	said := make(chan struct{})
	go func() {
		<-said
		_, _ = to.Write([]byte("late"))
		to.Close()
	}()
	n := 0
	c.waits = func() {
		if n++; n == 6 { // twice as long as the server waits
			close(said)
		}
	}
	_, err := c.Send(t.Context(), SendConfig{File: "x", Path: "x", Reader: from})
	c.Close()
	if errs := stop(); err != nil || len(errs) != 1 || errs[0] != nil {
		t.Error(err, errs)
	}
	if got, err := os.ReadFile(filepath.Join(r.dir, "x")); string(got) != "late" {
		t.Errorf("%q, %v", got, err)
	}
}
