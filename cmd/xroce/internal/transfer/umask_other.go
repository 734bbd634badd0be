//go:build !linux

package transfer

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// umask is which permission bits no file of this process gets. To hear it is to change it: for a
// moment others get no more than they do with what most have.
func umask() fs.FileMode {
	mask := unix.Umask(usualUmask)
	unix.Umask(mask)
	return fs.FileMode(mask).Perm()
}
