package pager

import (
	"runtime"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"

	"xroce/roce/mem"
)

// This is the only file of the package with unsafe and raw system calls: memory is
// named by address here, and what is mapped there may change at any time.

// supported reports whether the operating system can do what this package needs.
const supported = true

// resident asks for len(vec) pages from addr on whether each is present; the low bit of
// its byte says so (mincore, v6.18 mm/mincore.c). Addr is on a page. The error is ENOMEM
// when not all of them are mapped, and EAGAIN when the kernel is short of memory.
func resident(addr uint64, vec []byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(addr),
		uintptr(uint64(len(vec))*pageSize), uintptr(unsafe.Pointer(&vec[0])))
	return errno
}

// populate brings pages in, for writing if write (madvise, v6.18 mm/madvise.c
// madvise_populate). The error is ENOMEM when not all are mapped, EFAULT when an access
// would raise SIGBUS or SIGSEGV, EINVAL for memory without the right or of a device,
// EHWPOISON for broken memory.
func populate(addr, n uint64, write bool) unix.Errno {
	advice := unix.MADV_POPULATE_READ
	if write {
		advice = unix.MADV_POPULATE_WRITE
	}
	for {
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(addr), uintptr(n), uintptr(advice))
		if errno != unix.EINTR && errno != unix.EAGAIN {
			return errno
		}
	}
}

// populates reports whether the kernel knows populate: from 5.14 on.
func populates() bool { return populate(0, 0, false) == 0 }

// touch brings one page in as an access does. It is for kernels without populate.
func touch(addr uint64, write bool) (errno unix.Errno) {
	var fault mem.Fault
	defer func() {
		if fault != mem.OK {
			errno = unix.EFAULT
		}
	}()
	defer unguard(addr, pageSize, debug.SetPanicOnFault(true), &fault)
	w := word(addr)
	if write {
		mem.FetchAddOp.Do(w, 0, 0) // what is there stays there
	} else {
		runtime.KeepAlive(*w)
	}
	return 0
}

// AddressOf returns the address of a slice, 0 of an empty one.
func AddressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// addressOfWord is AddressOf for a word.
func addressOfWord(w *uint64) uint64 { return uint64(uintptr(unsafe.Pointer(w))) }

// bytesAt is n bytes of the address space. The checks of checkptr are off for it: they
// would refuse an address that is not in memory of Go's own.
//
//go:nocheckptr
func bytesAt(addr uint64, n int) []byte {
	at := uintptr(addr)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n)
}

// word is eight bytes of the address space, at a multiple of eight.
//
//go:nocheckptr
func word(addr uint64) *uint64 {
	at := uintptr(addr)
	return *(**uint64)(unsafe.Pointer(&at))
}

// copyFrom copies from the address space.
func copyFrom(addr uint64, dst []byte) (fault mem.Fault) {
	defer unguard(addr, uint64(len(dst)), debug.SetPanicOnFault(true), &fault)
	copy(dst, bytesAt(addr, len(dst)))
	return mem.OK
}

// copyTo copies to the address space.
func copyTo(addr uint64, src []byte) (fault mem.Fault) {
	defer unguard(addr, uint64(len(src)), debug.SetPanicOnFault(true), &fault)
	copy(bytesAt(addr, len(src)), src)
	return mem.OK
}

// operate does an atomic operation in the address space.
func operate(addr uint64, op mem.WordOp, x, y uint64) (old uint64, fault mem.Fault) {
	if raceDetector && populate(pageOf(addr), pageSize, true) != 0 {
		return 0, mem.FaultUnmapped // it may not be written
	}
	defer unguard(addr, 8, debug.SetPanicOnFault(true), &fault)
	return op.Do(word(addr), x, y), mem.OK
}

// unguard ends an access to n bytes at addr under debug.SetPanicOnFault: a fault in one
// of their pages is a result, any other panic goes on.
func unguard(addr, n uint64, before bool, fault *mem.Fault) {
	debug.SetPanicOnFault(before)
	switch err := recover().(type) {
	case nil:
	case interface {
		runtime.Error
		Addr() uintptr
	}:
		at := uint64(err.Addr())
		if at < pageOf(addr) || at >= pageEnd(addr+n) {
			panic(err)
		}
		*fault = mem.FaultUnmapped
	default:
		panic(err)
	}
}
