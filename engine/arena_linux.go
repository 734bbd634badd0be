package engine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hugePage is the size of the huge pages that are asked for.
const hugePage = 2 << 20

// mapArena returns n bytes of fresh memory on a page boundary, in whole pages of
// which all but the first n bytes stay unused. Memory of a huge page and more comes
// in huge pages if some are reserved, else the kernel is asked to make it of such
// pages when it can.
func mapArena(n int) (whole []byte, huge bool, err error) {
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if n >= hugePage {
		whole, err = unix.Mmap(-1, 0, roundUp(n, hugePage), prot,
			flags|unix.MAP_HUGETLB|unix.MAP_HUGE_2MB)
		if err == nil {
			if err = bringIn(whole); err == nil {
				return whole, true, nil
			}
			_ = unix.Munmap(whole)
		}
	}
	if whole, err = unix.Mmap(-1, 0, roundUp(n, os.Getpagesize()), prot, flags); err != nil {
		return nil, false, fmt.Errorf("engine: %d bytes of memory: %w", n, err)
	}
	if n >= hugePage {
		// A kernel without transparent huge pages says no, and nothing is lost.
		_ = unix.Madvise(whole, unix.MADV_HUGEPAGE)
	}
	return whole, false, nil
}

// bringIn brings in memory, so that what cannot be had is known now. Huge pages that are
// reserved may still be denied by a limit of the process's group, and then SIGBUS would be
// the answer to whoever touches them first.
func bringIn(whole []byte) error {
	err := unix.Madvise(whole, unix.MADV_POPULATE_WRITE)
	if errors.Is(err, unix.EINVAL) {
		return nil // Linux before 5.14 has no such advice
	}
	return err
}

// unmapArena gives back what mapArena returned.
func unmapArena(whole []byte) error { return unix.Munmap(whole) }

func roundUp(n, to int) int { return (n + to - 1) / to * to }
