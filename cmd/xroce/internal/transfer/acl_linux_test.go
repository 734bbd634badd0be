package transfer

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDefaultACL: where a directory has one, that says what rights a file has, and not the umask.
func TestDefaultACL(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{})
	// Version 2: user::rw-, group::r--, other::---, of nobody by name (linux/posix_acl_xattr.h).
	acl := []byte{2, 0, 0, 0}
	for _, e := range [][2]byte{{1, 6}, {4, 4}, {32, 0}} {
		acl = append(acl, e[0], 0, e[1], 0, 0xff, 0xff, 0xff, 0xff)
	}
	if err := unix.Setxattr(dir, "system.posix_acl_default", acl, 0); err != nil {
		t.Skip("the file system has no ACLs: ", err)
	}
	_, err := put(s, message{Path: "x", Name: "n", Mode: 0o644}, "")
	must(t, err)
	info, err := os.Stat(filepath.Join(dir, "x"))
	if must(t, err); info.Mode() != 0o640 {
		t.Error(info.Mode())
	}
	onlyParts(t, dir, 0)
}
