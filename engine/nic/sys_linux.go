package nic

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This is the only file of the package with unsafe and a raw system call.

// ifreq is struct ifreq with a pointer in its union.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// ethtoolCall is SIOCETHTOOL with what b holds, which begins with the command and has room for
// all that the kernel answers with that. EOPNOTSUPP is of a driver that does not have it,
// EPERM is for want of CAP_NET_ADMIN, ENODEV of a name that no interface has.
func ethtoolCall(iface string, b []byte) error {
	if len(iface) >= unix.IFNAMSIZ {
		return fmt.Errorf("interface %s: %w", iface, unix.ENODEV)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var r ifreq
	copy(r.name[:], iface)
	var pinned runtime.Pinner // the kernel follows the pointer in r
	defer pinned.Unpin()
	r.data = unsafe.Pointer(&b[0])
	pinned.Pin(r.data)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL,
		uintptr(unsafe.Pointer(&r)))
	if errno != 0 {
		return errno
	}
	return nil
}
