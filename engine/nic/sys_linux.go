package nic

import (
	"fmt"
	"net"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This is the only file of the package with unsafe and raw system calls.

// A socket asks one interface by the ioctl of ethtool: that of the network namespace in which
// it was opened, whatever its name is by then.
type socket struct{ fd, ifindex int }

// ifreq is struct ifreq with a pointer, or the number of an interface, in its union.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

type ifreqIndex struct {
	name  [unix.IFNAMSIZ]byte
	index uint32
	_     [20]byte
}

// openSocket opens a socket for an interface of the thread's network namespace.
func openSocket(iface string) (*socket, error) {
	ifi, err := net.InterfaceByName(iface)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", iface, err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &socket{fd, ifi.Index}, nil
}

func (s *socket) close() error { return unix.Close(s.fd) }

// call is SIOCETHTOOL with what b holds, which begins with the command and has room for all
// that the kernel answers with that. EOPNOTSUPP is of a driver that does not have it, EPERM
// for want of CAP_NET_ADMIN, ENODEV of an interface that is gone.
func (s *socket) call(b []byte) error {
	named := ifreqIndex{index: uint32(s.ifindex)}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.fd), unix.SIOCGIFNAME,
		uintptr(unsafe.Pointer(&named)))
	if errno != 0 {
		return errno
	}
	var pinned runtime.Pinner // the kernel follows the pointer in r
	defer pinned.Unpin()
	r := ifreq{name: named.name, data: unsafe.Pointer(&b[0])}
	pinned.Pin(r.data)
	_, _, errno = unix.Syscall(unix.SYS_IOCTL, uintptr(s.fd), unix.SIOCETHTOOL,
		uintptr(unsafe.Pointer(&r)))
	if errno != 0 {
		return errno
	}
	return nil
}
