package pagertest

import (
	"os"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"xroce/engine/pager"
)

// Block is how many bytes, a power of two, the pager asks the kernel about at once. All
// memory of this package begins at a multiple of it.
var Block = uint64(64 * os.Getpagesize())

// next is where the next memory goes: from 128 GiB on, which is above any program and
// below Go's heap, the stacks and what the kernel finds a place for, also where addresses
// have 39 bits.
var next atomic.Uint64

func init() { next.Store(1 << 37) }

// Place returns an address, a multiple of Block, at which nothing is mapped, nor behind
// it for n bytes and one Block more. What the test maps there is unmapped when it ends.
func Place(t testing.TB, n int) uint64 {
	t.Helper()
	room := (uint64(n)+Block-1)&^(Block-1) + Block
	at := next.Add(room) - room
	t.Cleanup(func() { unmap(t, at, n) })
	return at
}

// Map maps n bytes, a multiple of the page size, that nobody touched: of a file, shared,
// or anonymous and private if f is nil. They begin at a multiple of Block.
func Map(t testing.TB, n, prot int, f *os.File) []byte {
	t.Helper()
	at := Place(t, n)
	MapAt(t, at, n, prot, unix.MAP_FIXED_NOREPLACE, f)
	return Bytes(at, n)
}

// MapAt does it at an address of a Place. The flags say what is there already:
// MAP_FIXED_NOREPLACE that nothing is, MAP_FIXED that it may go.
func MapAt(t testing.TB, at uint64, n, prot, flags int, f *os.File) {
	t.Helper()
	fd := -1
	if f != nil {
		fd, flags = int(f.Fd()), flags|unix.MAP_SHARED
	} else {
		flags |= unix.MAP_ANON | unix.MAP_PRIVATE
	}
	if _, err := unix.MmapPtr(fd, 0, Pointer(at), uintptr(n), prot, flags); err != nil {
		t.Fatalf("mapping %d bytes at %#x: %v", n, at, err)
	}
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
