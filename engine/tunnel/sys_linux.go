package tunnel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawCall reads or writes a descriptor that does not block. The runtime is not told: a write to
// an interface takes as long as its packet takes in the kernel, and a thread that it takes for
// blocked meanwhile has to wait for its processor after the call.
func rawCall(call uintptr, fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, unix.EINVAL
	}
	n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&b[0])),
		uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// yield lets others have the processor, if there are any that wait for it. The thread keeps that of
// the runtime: it goes on when the kernel lets it.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
