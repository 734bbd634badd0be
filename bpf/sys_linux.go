package bpf

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This is the only hand-written file of the package with unsafe and raw system calls.

// A linkInfo is struct bpf_link_info of an XDP link (include/uapi/linux/bpf.h), with room for what
// longer ones have. It belongs to whoever asks.
type linkInfo struct {
	kind    uint32 // enum bpf_link_type
	id      uint32
	program uint32 // its number
	_       uint32
	ifindex uint32 // 0 of one that was detached
	_       [11]uint32
}

// objInfo is the part of union bpf_attr for BPF_OBJ_GET_INFO_BY_FD.
type objInfo struct {
	fd     uint32
	length uint32
	info   uint64 // an address
}

// A linkAsker asks what a link is. It is made once, in memory of the heap, which does not move,
// because the kernel follows an address that is a number: so a question allocates nothing.
type linkAsker struct {
	attr objInfo
	info linkInfo
}

// ask has info filled in for the descriptor of a link.
func (a *linkAsker) ask(fd int) error {
	a.info = linkInfo{}
	a.attr = objInfo{
		fd: uint32(fd), length: uint32(unsafe.Sizeof(a.info)),
		info: uint64(uintptr(unsafe.Pointer(&a.info))),
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_OBJ_GET_INFO_BY_FD,
		uintptr(unsafe.Pointer(&a.attr)), unsafe.Sizeof(a.attr))
	runtime.KeepAlive(a)
	if errno != 0 {
		return errno
	}
	return nil
}

// mapElem is the part of union bpf_attr for BPF_MAP_LOOKUP_ELEM.
type mapElem struct {
	fd    uint32
	_     uint32
	key   uint64 // an address
	value uint64 // an address
	flags uint64
}

// A countReader reads one entry of the array of counters, of all processors. It is made once, as a
// linkAsker is.
type countReader struct {
	attr   mapElem
	key    uint32
	perCPU []Count // of the possible processors, in memory of its own
}

// read has perCPU filled in for an entry of the map of a descriptor.
func (c *countReader) read(fd int, entry uint32) error {
	c.key = entry
	c.attr = mapElem{
		fd: uint32(fd), key: uint64(uintptr(unsafe.Pointer(&c.key))),
		value: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(c.perCPU)))),
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_LOOKUP_ELEM,
		uintptr(unsafe.Pointer(&c.attr)), unsafe.Sizeof(c.attr))
	runtime.KeepAlive(c)
	if errno != 0 {
		return errno
	}
	return nil
}
