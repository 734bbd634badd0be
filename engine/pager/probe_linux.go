package pager

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// try finds out whether the kernel has what this package is made of.
func try() error {
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	b, err := unix.Mmap(-1, 0, int(pageSize), prot, flags)
	if err != nil {
		return fmt.Errorf("pager: no on-demand paging: %w: no page to try it with: %w",
			errors.ErrUnsupported, err)
	}
	if err = tryAt(AddressOf(b)); err != nil {
		err = fmt.Errorf("pager: no on-demand paging: %w: %w", errors.ErrUnsupported, err)
	}
	return errors.Join(err, unix.Munmap(b))
}

// tryAt tries it with one page. A kernel that calls all pages present is good enough:
// accesses then wait for those that are not, under the guard that they always have.
func tryAt(page uint64) error {
	var vec [1]byte
	if errno := resident(page, vec[:]); errno != 0 {
		return fmt.Errorf("mincore: %w", errno)
	}
	for range 16 { // a page may have gone again
		if errno := touch(page, true); errno != 0 {
			return fmt.Errorf("touching a page: %w", errno)
		}
		if resident(page, vec[:]) == 0 && vec[0]&1 != 0 {
			return nil
		}
	}
	return errors.New("mincore does not see a page that was touched")
}
