package live

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This is the only hand-written file of the package with unsafe and raw system calls.

// A desc is a frame to send. As struct desc in live.c.
type desc struct {
	slot   uint32
	length uint32
}

// A batch is what the programs and we tell each other. As struct batch in live.c.
type batch struct {
	task  uint64
	count uint32
	next  uint32
	done  uint32
	told  uint32
	sent  uint32
	lost  uint32
	err   int32
	_     uint32

	frames [Frames]desc
}

// mapBatch shows the memory of the map of the batch, whose first value that is.
func mapBatch(mem []byte) *batch { return (*batch)(unsafe.Pointer(unsafe.SliceData(mem))) }

// batchSize is how long it is in bytes.
const batchSize = int(unsafe.Sizeof(batch{}))

// A runAttr is the part of union bpf_attr for BPF_PROG_RUN (include/uapi/linux/bpf.h).
type runAttr struct {
	fd         uint32
	_          uint32 // what the program returned
	dataLen    uint32
	_          uint32
	data       uint64 // an address
	_          uint64
	repeat     uint32
	_          uint32 // duration
	_, _       uint32 // context
	_, _       uint64
	flags, cpu uint32
	batchSize  uint32
	_          uint32
}

// run runs the program so often on frames as long as data, which they begin as. EINTR says that it
// was run less often; EINVAL that the kernel knows no live frames, or none so long; ENOTSUPP
// that a device is none for that.
func (r *runAttr) run(fd int, data []byte, times int) error {
	*r = runAttr{
		fd: uint32(fd), dataLen: uint32(len(data)),
		data: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data)))), repeat: uint32(times),
		flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES, batchSize: bulk,
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_RUN, uintptr(unsafe.Pointer(r)),
		unsafe.Sizeof(*r))
	runtime.KeepAlive(data)
	if errno != 0 {
		return errno
	}
	return nil
}
