package userfile

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// has says what is in a file.
func has(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s has %q, want %q: %v", name, got, want, err)
	}
}

// gone says that nothing has a name.
func gone(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Lstat(name); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", name, err)
	}
}

// TestOutputKeepsWhatWasThere until it begins, and has nothing of it then.
func TestOutputKeepsWhatWasThere(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(name, []byte("of yesterday"), 0o600))
	o, err := Open(name)
	must(t, err)
	has(t, name, "of yesterday")
	o.Abandon()
	has(t, name, "of yesterday")
	o, err = Open(name)
	must(t, err)
	must(t, o.Begin())
	_, err = o.WriteString("today")
	must(t, err)
	must(t, o.Close())
	has(t, name, "today")
}

// TestOutputRemovesItsOwn file alone, when it is abandoned: not one that has its name by now, nor
// one that somebody else writes to, nor what is no file, nor what a link leads to.
func TestOutputRemovesItsOwn(t *testing.T) {
	dir := t.TempDir()
	name, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "fifo")
	link, target := filepath.Join(dir, "link"), filepath.Join(dir, "target")
	o, err := Open(name)
	must(t, err)
	o.Abandon()
	gone(t, name)

	o, err = Open(name)
	must(t, err)
	must(t, os.Rename(name, name+".mine"))
	must(t, os.WriteFile(name, nil, 0o600))
	o.Abandon()
	has(t, name, "")
	must(t, os.Remove(name))

	o, err = Open(name)
	must(t, err)
	must(t, os.WriteFile(name, []byte("of another"), 0o600))
	o.Abandon()
	has(t, name, "of another")

	must(t, unix.Mkfifo(fifo, 0o600))
	must(t, os.Symlink(target, link))
	for _, other := range []string{fifo, link} {
		o, err = Open(other)
		must(t, err)
		must(t, o.Begin())
		o.Abandon()
		if _, err := os.Lstat(other); err != nil {
			t.Error(err)
		}
	}
	has(t, target, "") // it was made, through a link that is not ours
}
