//go:build !linux

package pager

import (
	"golang.org/x/sys/unix"

	"xroce/roce/mem"
)

// Paging needs mincore and madvise as Linux has them. NewRegion says so here, and
// nothing else is called.
const supported = false

func resident(uint64, []byte) unix.Errno       { return unix.ENOSYS }
func populate(uint64, uint64, bool) unix.Errno { return unix.ENOSYS }
func populates() bool                          { return false }
func touch(uint64, bool) unix.Errno            { return unix.ENOSYS }
func copyFrom(uint64, []byte) mem.Fault        { return mem.FaultUnmapped }
func copyTo(uint64, []byte) mem.Fault          { return mem.FaultUnmapped }
func operate(uint64, mem.WordOp, uint64, uint64) (uint64, mem.Fault) {
	return 0, mem.FaultUnmapped
}

func addressOfWord(*uint64) uint64 { return 0 }

// AddressOf returns 0.
func AddressOf([]byte) uint64 { return 0 }
