package softroce

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// socketBuffer is how many bytes of frames wait for the reader of a Socket.
const socketBuffer = 16 << 20

// Socket opens the other end of a VM that has the site's tap as its wire: what it sends comes
// out, and what is written goes to it, on the queue that the tap chooses. It is for NewCable,
// which closes it.
func (s *Site) Socket() (*os.File, error) {
	var file *os.File
	err := s.do(func() error {
		index, err := net.InterfaceByName(TapName)
		if err != nil {
			return err
		}
		file, err = packetSocket(index.Index)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("softroce: a socket on %s: %w", TapName, err)
	}
	return file, nil
}

// packetSocket opens a socket (packet(7)) for all frames of an interface but those that are
// sent on it.
func packetSocket(ifindex int) (*os.File, error) {
	const flags = unix.SOCK_RAW | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	fd, err := unix.Socket(unix.AF_PACKET, flags, 0) // no frames before it is bound
	if err != nil {
		return nil, err
	}
	for _, set := range []func() error{
		func() error {
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer)
		},
		func() error {
			return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
		},
		func() error {
			return unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP,
				&unix.PacketMreq{Ifindex: int32(ifindex), Type: unix.PACKET_MR_PROMISC})
		},
		func() error {
			return unix.Bind(fd, &unix.SockaddrLinklayer{
				Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: ifindex,
			})
		},
	} {
		if err := set(); err != nil {
			return nil, errors.Join(err, unix.Close(fd))
		}
	}
	return os.NewFile(uintptr(fd), "packet socket"), nil
}

// networkOrder swaps the bytes of a number, as its holder has it in memory on this processor:
// QEMU emulates a PC, and the image is for one.
func networkOrder(v uint16) uint16 { return v<<8 | v>>8 }
