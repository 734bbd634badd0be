package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// store opens a store on a directory that has a file, a subdirectory with a file, and
// symbolic links to each and to the outside.
func store(t *testing.T, c StoreConfig) (s *Store, dir, outside string) {
	t.Helper()
	dir, outside = t.TempDir(), t.TempDir()
	err := errors.Join(
		os.WriteFile(filepath.Join(outside, "secret"), []byte("theirs"), 0o600),
		os.WriteFile(filepath.Join(dir, "file"), []byte("ours"), 0o600),
		os.Mkdir(filepath.Join(dir, "sub"), 0o700),
		os.Mkdir(filepath.Join(dir, ".hidden"), 0o700),
		os.Symlink("file", filepath.Join(dir, "tofile")),
		os.Symlink("sub", filepath.Join(dir, "tosub")),
		os.Symlink(outside, filepath.Join(dir, "out")),
		os.Symlink(filepath.Join(outside, "new"), filepath.Join(dir, "tonew")),
		unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
	)
	if err == nil {
		s, err = OpenStore(dir, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, dir, outside
}

// put makes a file of a store as a receiver does.
func put(s *Store, m message, content string) (path string, err error) {
	m.Size = int64(len(content))
	p, err := s.create(context.Background(), &m, Sender{})
	if err != nil {
		return "", err
	}
	if err = p.add([]byte(content)); err == nil {
		err = p.commit()
	}
	return p.path, errors.Join(err, p.close())
}

// snapshot is every name below a directory with its type, mode and content.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		content := ""
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(data)
		}
		name, err := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%s %v %q\n", name, info.Mode(), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestStoreRefuses is what a peer may not do by default: nothing of it changes anything.
func TestStoreRefuses(t *testing.T) {
	s, dir, outside := store(t, StoreConfig{})
	before := snapshot(t, dir) + snapshot(t, outside)
	part := partPrefix + strings.Repeat("A", 26) + partSuffix
	for _, c := range []struct {
		path, name string
		want       error
	}{
		{"../x", "n", ErrPath},
		{"/tmp/x", "n", ErrPath},
		{"a/../../x", "n", ErrPath},
		{"..", "n", ErrPath},
		{"", "", ErrPath},
		{"", ".", ErrPath},
		{"sub", "..", ErrPath},
		{"sub/", "a/b", ErrPath},
		{"", "/", ErrPath},
		{strings.Repeat("a/", maxPath), "n", ErrPath},
		{".x", "n", ErrPath},
		{"", ".bashrc", ErrPath},
		{".hidden/x", "n", ErrPath},
		{".hidden/", "n", ErrPath},
		{"sub/.ssh", "n", ErrPath},
		{part, "n", ErrPath},
		{"file", "n", fs.ErrExist},
		{"", "file", fs.ErrExist},
		{"fifo", "n", fs.ErrExist},
		{"tofile", "n", fs.ErrExist},
		{"tonew", "n", fs.ErrExist},
		{"tosub", "n", fs.ErrExist},
		{"out", "n", fs.ErrExist},
		{"tosub/x", "n", unix.ENOTDIR},
		{"tosub/", "n", unix.ENOTDIR},
		{"out/secret", "n", unix.ENOTDIR},
		{"out/", "secret", unix.ENOTDIR},
		{"file/x", "n", unix.ENOTDIR},
		{"missing/x", "n", unix.ENOENT},
		{"missing/", "n", unix.ENOENT},
		{"missing/.", "n", unix.ENOENT},
		{"missing//./", "n", unix.ENOENT},
		{"file/.", "n", unix.ENOTDIR},
		{"a\x00b", "n", ErrPath},
		{"a\nb", "n", ErrPath},
		{"", "\x1b[2J", ErrPath},
		{"sub/\u009b", "n", ErrPath},
		{strings.Repeat("x", 256), "n", unix.ENAMETOOLONG},
		{strings.Repeat("\x01", maxPath), "n", ErrPath},
		{strings.Repeat("\x01", 64<<10), "n", ErrPath},
		{"", strings.Repeat("\x01", 64<<10), ErrPath},
		{"sub/", strings.Repeat("x", maxName+1), ErrPath},
	} {
		if path, err := put(s, message{Path: c.path, Name: c.name}, "x"); !errors.Is(err, c.want) {
			t.Errorf("%q, %q: %q, %v, not %v", c.path, c.name, path, err, c.want)
		} else if len(err.Error()) > maxError {
			t.Errorf("%.20q, %.20q: an error of %d bytes", c.path, c.name, len(err.Error()))
		}
	}
	if after := snapshot(t, dir) + snapshot(t, outside); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

// maxError is how long an error that has words of a peer in it may be, in bytes: not
// much longer than a path.
const maxError = maxPath + 1<<10

// TestStoreAllows is what a peer may do when the flags say so, and no more.
func TestStoreAllows(t *testing.T) {
	s, dir, outside := store(t, StoreConfig{Overwrite: true, Dotfiles: true})
	before := snapshot(t, outside)
	for path, want := range map[string]error{
		"file": nil, ".x": nil, ".hidden/x": nil, "sub/.y": nil,
		"fifo": fs.ErrExist, "tofile": fs.ErrExist, "tonew": fs.ErrExist, "out": fs.ErrExist,
		"out/secret": unix.ENOTDIR, "../x": ErrPath,
		partPrefix + strings.Repeat("2", 26) + partSuffix: ErrPath,
	} {
		if _, err := put(s, message{Path: path, Name: "n"}, "new"); !errors.Is(err, want) {
			t.Errorf("%s: %v, not %v", path, err, want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != "new" {
		t.Errorf("%q, %v", got, err)
	}
	if after := snapshot(t, outside); after != before {
		t.Errorf("outside: %s", after)
	}
}

// FuzzStore asks for any path: what comes of it is one regular file below the directory,
// which was not there, or nothing.
func FuzzStore(f *testing.F) {
	for _, path := range []string{"x", "sub/", "../x", "out/x", ".x", "tosub/../x", "sub/./x"} {
		f.Add(path, "n", false)
	}
	f.Fuzz(func(t *testing.T, path, name string, dotfiles bool) {
		s, dir, outside := store(t, StoreConfig{Dotfiles: dotfiles})
		before := snapshot(t, outside)
		files := strings.Count(snapshot(t, dir), "\n")
		got, err := put(s, message{Path: path, Name: name}, "new")
		if after := snapshot(t, outside); after != before {
			t.Errorf("outside: %s", after)
		}
		if more := strings.Count(snapshot(t, dir), "\n") - files; more != 0 && err != nil ||
			more != 1 && err == nil {
			t.Errorf("%d files more, %v", more, err)
		}
		if err != nil {
			return
		}
		content, err := os.ReadFile(filepath.Join(dir, got))
		if err != nil || string(content) != "new" || !filepath.IsLocal(got) ||
			!dotfiles && strings.Contains("/"+got, "/.") {
			t.Errorf("%q: %q, %v", got, content, err)
		}
	})
}

// TestLateArrivals are files that somebody else makes while one is received.
func TestLateArrivals(t *testing.T) {
	for _, overwrite := range []bool{false, true} {
		s, dir, outside := store(t, StoreConfig{Overwrite: overwrite})
		for name, make := range map[string]func(string) error{
			"a": func(to string) error { return os.WriteFile(to, []byte("theirs"), 0o600) },
			"b": func(to string) error { return os.Symlink(filepath.Join(outside, "new"), to) },
			"c": func(to string) error { return os.Mkdir(to, 0o700) },
		} {
			p, err := s.create(t.Context(), &message{Path: name, Name: "n", Size: 1}, Sender{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(p.add([]byte("x")), make(filepath.Join(dir, name))); err != nil {
				t.Fatal(err)
			}
			before := snapshot(t, filepath.Join(dir, name))
			err = p.commit()
			if allowed := overwrite && name == "a"; (err == nil) != allowed {
				t.Errorf("%s, overwrite %t: %v", name, overwrite, err)
			} else if after := snapshot(t, filepath.Join(dir, name)); !allowed && after != before {
				t.Errorf("%s, overwrite %t: %s", name, overwrite, after)
			}
			if err := p.close(); err != nil {
				t.Error(err)
			}
		}
		if got := snapshot(t, dir); strings.Contains(got, partSuffix) {
			t.Errorf("left: %s", got)
		}
	}
}

// TestModes: a peer has no say beyond the mask and the umask.
func TestModes(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{})
	wide, wideDir, _ := store(t, StoreConfig{Mode: 0o777})
	for offered, want := range map[uint32][2]fs.FileMode{
		0:       {0o400, 0o400},
		0o600:   {0o600, 0o600},
		0o644:   {0o644, 0o644},
		0o777:   {0o644, 0o755},
		0o444:   {0o444, 0o444},
		0o7777:  {0o644, 0o755}, // set-user-ID and its sisters
		1 << 31: {0o400, 0o400},
	} {
		name := fmt.Sprintf("%o", offered)
		for n, s := range []*Store{s, wide} {
			if _, err := put(s, message{Path: name, Name: "n", Mode: offered}, ""); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(filepath.Join([]string{dir, wideDir}[n], name))
			if err != nil || info.Mode() != want[n] {
				t.Errorf("%o: %v and not %v, %v", offered, info.Mode(), want[n], err)
			}
		}
	}
}

// TestLongNames: any name that the file system takes can be received.
func TestLongNames(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{})
	for _, name := range []string{strings.Repeat("n", 255), strings.Repeat("\u00fc", 127)} {
		if _, err := put(s, message{Path: "sub/", Name: name}, "x"); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "sub", name)); err != nil {
			t.Error(err)
		}
	}
}

// TestQuota counts what is there, what is promised, and what is given back.
func TestQuota(t *testing.T) {
	s, _, _ := store(t, StoreConfig{MaxFile: 100, MaxTotal: 150, MaxFiles: 3})
	free := int64(math.MaxInt64)
	s.free = func(*os.File) (int64, error) { return free, nil }
	try := func(name string, size int64, want string) *partial {
		t.Helper()
		p, err := s.create(t.Context(), &message{Path: name, Name: "n", Size: size}, Sender{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Fatalf("%s of %d bytes: %v, not %q", name, size, err, want)
		}
		return p
	}
	try("a", 101, "at most 100 here (serve --max-file)")
	a := try("a", 100, "")
	try("b", 51, "50 more are taken (serve --max-total)")
	b := try("b", 50, "")
	if err := a.close(); err != nil { // it was given up
		t.Fatal(err)
	}
	free = 120 // of which b has 50 coming
	try("c", 71, "71 bytes, and 70 are free")
	if err := b.add(make([]byte, 50)); err != nil {
		t.Fatal(err)
	}
	free = 70
	c := try("c", 70, "")
	d := try("d", 0, "")
	try("e", 0, "3 files were taken, and no more are (serve --max-files)")
	if err := errors.Join(b.commit(), b.close(), c.close(), d.close()); err != nil {
		t.Fatal(err)
	}
	if s.files != 1 || s.total != 50 || s.missing.sum() != 0 {
		t.Errorf("%d files, total %d, missing %d", s.files, s.total, s.missing.sum())
	}
	if n, err := freeBytes(s.dir); err != nil || n <= 0 {
		t.Errorf("free: %d, %v", n, err)
	}
}

// TestOnDisk: the file is written to disk before it has its name, its name after.
func TestOnDisk(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{})
	var steps []string
	s.sync = func(f *os.File) error {
		_, err := os.Stat(filepath.Join(dir, "sub", "x"))
		steps = append(steps, fmt.Sprintf("%s %t", filepath.Base(f.Name())[:3], err == nil))
		return f.Sync()
	}
	if _, err := put(s, message{Path: "sub/x", Name: "n"}, "x"); err != nil {
		t.Fatal(err)
	}
	if want := "[.xr false sub true]"; fmt.Sprint(steps) != want {
		t.Errorf("%v, not %s", steps, want)
	}
}

// A spoiler changes what it was handed to write from, as a peer can whose memory it is.
type spoiler struct {
	memory []byte
	got    bytes.Buffer
}

func (s *spoiler) Write(b []byte) (int, error) {
	n, err := s.got.Write(b)
	clear(s.memory)
	return n, err
}

// TestHashIsOfWhatWasWritten although the peer writes to the slot after it was taken.
func TestHashIsOfWhatWasWritten(t *testing.T) {
	slot := []byte("what the peer wrote first")
	s := &spoiler{memory: slot}
	l, same := newLedger(s), newLedger(&spoiler{})
	if _, err := l.add(slot); err != nil {
		t.Fatal(err)
	}
	if _, err := same.add(s.got.Bytes()); err != nil {
		t.Fatal(err)
	}
	if l.sum() != same.sum() || s.got.String() != "what the peer wrote first" {
		t.Errorf("%q has another digest", s.got.String())
	}
}

// TestExistingIsRefusedAtOnce: what may not be replaced is refused before any of it is sent.
func TestExistingIsRefusedAtOnce(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{})
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.create(t.Context(), &message{Path: "a", Name: "n", Size: 1}, Sender{})
	if !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
}
