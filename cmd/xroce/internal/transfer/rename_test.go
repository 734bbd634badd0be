package transfer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRenames: a file gets its name on file systems that lack one or the other system call, and
// takes it from none that came meanwhile. What the disk says is told.
func TestRenames(t *testing.T) {
	fail := func(err error) func(int, string, string) error {
		return func(int, string, string) error { return err }
	}
	for name, c := range map[string]struct {
		rename, link, want error // nil for those of the kernel
	}{
		"both":              {},
		"no flags":          {unix.EINVAL, nil, nil},
		"an old kernel":     {unix.ENOSYS, nil, nil},
		"vboxsf":            {unix.EINVAL, unix.EPERM, nil},
		"FUSE":              {unix.EINVAL, unix.ENOSYS, nil},
		"a server":          {unix.EINVAL, unix.EOPNOTSUPP, nil},
		"a bad disk":        {unix.EIO, nil, unix.EIO},
		"a bad disk behind": {unix.EINVAL, unix.EIO, unix.EIO},
	} {
		for _, late := range []bool{false, true} {
			s, dir, _ := store(t, StoreConfig{})
			if c.rename != nil {
				s.renameNew = fail(c.rename)
			}
			if c.link != nil {
				s.link = fail(c.link)
			}
			p, err := s.create(t.Context(), &message{Path: "new", Name: "n", Size: 1}, Sender{})
			must(t, err)
			must(t, p.add([]byte("x")))
			at, content, want := filepath.Join(dir, "new"), "x", c.want
			if late && want == nil {
				content, want = "theirs", fs.ErrExist
				must(t, os.WriteFile(at, []byte(content), 0o600))
			}
			if err := p.commit(); !errors.Is(err, want) {
				t.Errorf("%s, late %t: %v", name, late, err)
			}
			must(t, p.close())
			if got, err := os.ReadFile(at); c.want == nil && string(got) != content {
				t.Errorf("%s, late %t: %q, %v", name, late, got, err)
			}
			if left := snapshot(t, dir); strings.Contains(left, partSuffix) {
				t.Errorf("%s, late %t: left:\n%s", name, late, left)
			}
		}
	}
}
