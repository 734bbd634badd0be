package pagertest

import (
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"xroce/engine/pager"
)

// Block is how many bytes, a power of two, the pager asks the kernel about at once. All
// memory of this package begins at a multiple of it.
var Block = uint64(64 * os.Getpagesize())

// next is where the next memory goes. On amd64 that is between the last address that Go
// gives its heap, which it puts anywhere below 2^46, and where the kernel begins; else it
// is above any program and below what the kernel finds a place for, also where addresses
// have 39 bits. What is there already is passed over.
var next atomic.Uint64

func init() {
	next.Store(1 << 37)
	if runtime.GOARCH == "amd64" {
		next.Store(3 << 45)
	}
}

// Map maps n bytes, a multiple of the page size, that nobody touched: of a file, shared,
// or anonymous and private if f is nil. They begin at a multiple of Block, and what the
// test has there in the end is unmapped.
func Map(t testing.TB, n, prot int, f *os.File) []byte {
	t.Helper()
	room := (uint64(n)+Block-1)&^(Block-1) + Block // nothing touches what is next
	for {
		at := next.Add(room) - room
		if err := mapAt(at, n, prot, unix.MAP_FIXED_NOREPLACE, f); err == nil {
			t.Cleanup(func() { unmap(t, at, n) })
			return Bytes(at, n)
		} else if !errors.Is(err, unix.EEXIST) {
			t.Fatalf("mapping %d bytes at %#x: %v", n, at, err)
		}
	}
}

// MapAt maps n bytes at an address of Map's. The flags say what is there: with
// MAP_FIXED_NOREPLACE nothing may be, with MAP_FIXED it goes.
func MapAt(t testing.TB, at uint64, n, prot, flags int, f *os.File) {
	t.Helper()
	if err := mapAt(at, n, prot, flags, f); err != nil {
		t.Fatalf("mapping %d bytes at %#x: %v", n, at, err)
	}
}

func mapAt(at uint64, n, prot, flags int, f *os.File) error {
	fd := -1
	if f != nil {
		fd, flags = int(f.Fd()), flags|unix.MAP_SHARED
	} else {
		flags |= unix.MAP_ANON | unix.MAP_PRIVATE
	}
	_, err := unix.MmapPtr(fd, 0, Pointer(at), uintptr(n), prot, flags)
	return err
}

// Unmap unmaps memory of Map. The test may go on to use its address.
func Unmap(t testing.TB, b []byte) {
	t.Helper()
	unmap(t, pager.AddressOf(b), len(b))
}

// unmap unmaps what is mapped of n bytes, which may be nothing.
func unmap(t testing.TB, at uint64, n int) {
	t.Helper()
	if err := unix.MunmapPtr(Pointer(at), uintptr(n)); err != nil {
		t.Errorf("unmapping %d bytes at %#x: %v", n, at, err)
	}
}

// Pointer is an address as package unix wants it.
func Pointer(at uint64) unsafe.Pointer {
	p := uintptr(at)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

// Bytes is memory at an address.
func Bytes(at uint64, n int) []byte { return unsafe.Slice((*byte)(Pointer(at)), n) }
