package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Attributes inside IFLA_XDP (include/uapi/linux/if_link.h).
const (
	iflaXDPProgID    = 4
	iflaXDPDrvProgID = 5
	iflaXDPSkbProgID = 6
	iflaXDPHwProgID  = 7
)

// A device is what Attach has to know about an interface beforehand.
type device struct {
	name     string
	rxQueues int // the number allocated, in use or not
	progID   uint32
}

// readDevice asks the kernel about one interface of the thread's namespace.
func readDevice(ifindex int) (device, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return device{}, fmt.Errorf("netlink socket: %w", err)
	}
	defer unix.Close(fd)

	req := make([]byte, unix.SizeofNlMsghdr+unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(req, uint32(len(req)))
	binary.NativeEndian.PutUint16(req[4:], unix.RTM_GETLINK)
	binary.NativeEndian.PutUint16(req[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(req[unix.SizeofNlMsghdr+4:], uint32(ifindex))
	if err := unix.Sendto(fd, req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return device{}, fmt.Errorf("ask for the link: %w", err)
	}
	answer := make([]byte, 64<<10) // the kernel answers in one message
	for {
		n, _, err := unix.Recvfrom(fd, answer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return device{}, fmt.Errorf("read the link: %w", err)
		}
		return parseLink(answer[:n])
	}
}

var errShortLink = errors.New("short netlink answer")

// parseLink reads one RTM_NEWLINK or NLMSG_ERROR message.
func parseLink(b []byte) (device, error) {
	if len(b) < unix.SizeofNlMsghdr+4 {
		return device{}, errShortLink
	}
	switch kind := binary.NativeEndian.Uint16(b[4:]); kind {
	case unix.NLMSG_ERROR:
		return device{}, unix.Errno(-int32(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr:])))
	case unix.RTM_NEWLINK:
	default:
		return device{}, fmt.Errorf("netlink answer of type %d", kind)
	}
	if len(b) < unix.SizeofNlMsghdr+unix.SizeofIfInfomsg {
		return device{}, errShortLink
	}
	var d device
	attrs := b[unix.SizeofNlMsghdr+unix.SizeofIfInfomsg:]
	err := eachAttr(attrs, func(kind int, value []byte) error {
		switch kind {
		case unix.IFLA_IFNAME:
			if n := len(value); n > 0 {
				d.name = string(value[:n-1]) // without the final zero
			}
		case unix.IFLA_NUM_RX_QUEUES:
			if len(value) < 4 {
				return errShortLink
			}
			d.rxQueues = int(binary.NativeEndian.Uint32(value))
		case unix.IFLA_XDP:
			return eachAttr(value, d.setXDP)
		}
		return nil
	})
	return d, err
}

// setXDP takes over one attribute of IFLA_XDP. With one program the kernel
// gives IFLA_XDP_PROG_ID, with several modes in use the ids by mode only; the
// first id is enough to refuse.
func (d *device) setXDP(kind int, value []byte) error {
	switch kind {
	case iflaXDPProgID, iflaXDPDrvProgID, iflaXDPSkbProgID, iflaXDPHwProgID:
		if len(value) < 4 {
			return errShortLink
		}
		if d.progID == 0 {
			d.progID = binary.NativeEndian.Uint32(value)
		}
	}
	return nil
}

// eachAttr calls f for each route attribute in b.
func eachAttr(b []byte, f func(kind int, value []byte) error) error {
	for len(b) >= unix.SizeofRtAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return errShortLink
		}
		const flags = unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER
		kind := int(binary.NativeEndian.Uint16(b[2:])) &^ flags
		if err := f(kind, b[unix.SizeofRtAttr:n]); err != nil {
			return err
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil
}
