package pager

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
)

// pageSize is what the kernel brings in at once.
var pageSize = uint64(os.Getpagesize())

// pageOf is the beginning of the page of an address.
func pageOf(addr uint64) uint64 { return addr &^ (pageSize - 1) }

// pageEnd is the end of the page that ends an access before addr.
func pageEnd(addr uint64) uint64 { return pageOf(addr + pageSize - 1) }

// addressLimit is above every address of a process, on any machine that Go runs on. No
// sum of one below it and a length of one access wraps.
const addressLimit = 1 << 62

// A Range is Length bytes of the address space from Addr on.
type Range struct{ Addr, Length uint64 }

// String prints the range as /proc/self/maps does.
func (r Range) String() string { return fmt.Sprintf("%x-%x", r.Addr, r.Addr+r.Length) }

// Implicit is the range of a region for the whole address space.
var Implicit = Range{0, math.MaxUint64}

// ErrRange says that a list of ranges has one that is empty or wraps around.
var ErrRange = errors.New("pager: a range that is empty or wraps around")

// merge sorts ranges and joins those that touch. It returns an empty list, not nil, of
// none.
func merge(list []Range) ([]Range, error) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Range) int { return cmp.Compare(a.Addr, b.Addr) })
	joined := make([]Range, 0, len(list))
	for _, r := range list {
		if r.Length == 0 || r.Addr+r.Length < r.Addr {
			return nil, fmt.Errorf("%w: %d bytes at %#x", ErrRange, r.Length, r.Addr)
		}
		if n := len(joined); n > 0 && r.Addr <= joined[n-1].Addr+joined[n-1].Length {
			last := &joined[n-1]
			last.Length = max(last.Length, r.Addr+r.Length-last.Addr)
			continue
		}
		joined = append(joined, r)
	}
	return joined, nil
}

// covers reports whether one of the ranges, merged before, has all of n bytes at addr.
func covers(list []Range, addr, n uint64) bool {
	low, high := 0, len(list) // the first that begins behind addr is among these
	for low < high {
		if mid := int(uint(low+high) >> 1); list[mid].Addr <= addr {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return false
	}
	r := list[low-1]
	off := addr - r.Addr
	return off <= r.Length && n <= r.Length-off
}
