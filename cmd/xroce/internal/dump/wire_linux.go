package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine/capture"
)

// A Wire is a Source of copies that the kernel makes of the packets of an interface
// (packet(7)). It takes none away from anybody. Packets that AF_XDP takes, or sends, the
// kernel does not see.
type Wire struct {
	file    *os.File
	name    string
	wanted  capture.Filter
	snap    int
	stats   capture.Statistics
	stopped atomic.Bool
	looking bool // the interface was down once: it may be removed unheard
	frame   []byte
	packet  capture.Packet
}

// wireBuffer is how many bytes of packets wait in the kernel.
const wireBuffer = 16 << 20

// lookTime is how often it is looked whether an interface that was down is still there.
const lookTime = time.Second

// errRemoved ends a capture.
var errRemoved = errors.New("the interface was removed")

// OpenWire begins to copy what an interface receives and sends.
func OpenWire(iface string, wanted capture.Filter, snap int) (*Wire, error) {
	ifi, err := net.InterfaceByName(iface)
	var errno syscall.Errno
	if errors.As(err, &errno) { // of the asking, which did not say whether there is one
		return nil, fmt.Errorf("look up interface %s: %w", iface, err)
	}
	if err != nil {
		return nil, fmt.Errorf("no xroce process has an interface %q, and the kernel neither: %w",
			iface, err)
	}
	const flags = unix.SOCK_RAW | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	fd, err := unix.Socket(unix.AF_PACKET, flags, 0)
	if err != nil {
		return nil, fmt.Errorf("a copy of the packets of %s: %w", iface, err)
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
	)
	// More than the limit for everybody, if we may.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, wireBuffer) != nil {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, wireBuffer))
	}
	// No packet comes before this.
	err = errors.Join(err, unix.Bind(fd, &unix.SockaddrLinklayer{
		Protocol: bits.ReverseBytes16(unix.ETH_P_ALL), Ifindex: ifi.Index,
	}))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a copy of the packets of %s: %w", iface, err),
			unix.Close(fd))
	}
	return &Wire{
		file: os.NewFile(uintptr(fd), iface), name: iface, wanted: wanted, snap: snap,
		frame: make([]byte, 1<<16),
	}, nil
}

// Interface implements Source.
func (w *Wire) Interface() string { return w.name }

// Next implements Source.
func (w *Wire) Next() (*capture.Packet, error) {
	for {
		err := w.receive()
		late := errors.Is(err, os.ErrDeadlineExceeded)
		switch {
		case late && w.stopped.Load():
			return nil, io.EOF
		case errors.Is(err, unix.ENETDOWN), late && w.looking:
			if err = w.outage(); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		w.stats.Received++
		if w.wanted != nil && !w.wanted.Match(&w.packet) {
			continue
		}
		w.stats.Accepted++
		w.stats.At = w.packet.At
		if p := &w.packet; w.snap > 0 && len(p.Head) > w.snap {
			p.Head = p.Head[:w.snap]
		}
		return &w.packet, nil
	}
}

// outage has the packets of an interface that is down waited for. The kernel says once that it is,
// and copies packets again when it is up; of one that is down it does not say that it was removed
// (v6.18 net/packet/af_packet.c, packet_notifier). The error is for one that was. A packet is no
// sign that the interface is up again: it may have waited since before, or between two outages of
// which the kernel says one. So it is looked from then on, once a second.
func (w *Wire) outage() error {
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	var at unix.Sockaddr
	controlErr := raw.Control(func(fd uintptr) { at, err = unix.Getsockname(int(fd)) })
	if err := errors.Join(controlErr, err); err != nil {
		return err
	}
	if ll, ok := at.(*unix.SockaddrLinklayer); ok && ll.Ifindex < 0 {
		return errRemoved
	}
	w.looking = true
	err = w.file.SetReadDeadline(time.Now().Add(lookTime))
	if w.stopped.Load() { // meanwhile
		err = w.file.SetReadDeadline(time.Now())
	}
	return err
}

// receive takes the next packet.
func (w *Wire) receive() error {
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	var n, oobn int
	var from unix.Sockaddr
	// Four bytes are left free for a tag, in front of the EtherType.
	var oob [256]byte
	readErr := raw.Read(func(fd uintptr) bool {
		n, oobn, _, from, err = unix.Recvmsg(int(fd), w.frame[vlanLen:], oob[:], unix.MSG_TRUNC)
		return !errors.Is(err, unix.EAGAIN)
	})
	if err := errors.Join(readErr, err); err != nil {
		return err
	}
	w.packet = capture.Packet{Dir: capture.Inbound, Len: n}
	kept := min(n, len(w.frame)-vlanLen)
	w.packet.Head = w.frame[vlanLen:][:kept]
	if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype == unix.PACKET_OUTGOING {
		w.packet.Dir = capture.Outbound
	}
	return w.auxiliary(oob[:oobn])
}

const vlanLen = 4

// auxiliary takes the time, and the tag that the kernel has taken out of the frame.
func (w *Wire) auxiliary(oob []byte) error {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return err
	}
	p := &w.packet
	p.At = time.Now().UnixNano()
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS &&
			len(m.Data) >= 16:
			p.At = int64(binary.NativeEndian.Uint64(m.Data))*int64(time.Second) +
				int64(binary.NativeEndian.Uint64(m.Data[8:]))
		case m.Header.Level == unix.SOL_PACKET && m.Header.Type == unix.PACKET_AUXDATA &&
			len(m.Data) >= 20 && len(p.Head) >= 12:
			// struct tpacket_auxdata of linux/if_packet.h
			status := binary.NativeEndian.Uint32(m.Data)
			if status&unix.TP_STATUS_VLAN_VALID == 0 {
				continue
			}
			tpid := uint16(unix.ETH_P_8021Q)
			if status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
				tpid = binary.NativeEndian.Uint16(m.Data[18:])
			}
			tagged := w.frame[:len(p.Head)+vlanLen]
			copy(tagged, p.Head[:12])
			binary.BigEndian.PutUint16(tagged[12:], tpid)
			binary.BigEndian.PutUint16(tagged[14:], binary.NativeEndian.Uint16(m.Data[16:]))
			p.Head, p.Len = tagged, p.Len+vlanLen
		}
	}
	return nil
}

// Buffered implements Source.
func (w *Wire) Buffered() bool {
	raw, err := w.file.SyscallConn()
	if err != nil {
		return false
	}
	ready := false
	err = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ready = err == nil && n == 1
	})
	return err == nil && ready
}

// Statistics implements Source. What the kernel dropped is asked for once, since asking
// begins anew.
func (w *Wire) Statistics() (capture.Statistics, bool) {
	raw, err := w.file.SyscallConn()
	if err != nil {
		return w.stats, false
	}
	controlErr := raw.Control(func(fd uintptr) {
		var s *unix.TpacketStats
		if s, err = unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET,
			unix.PACKET_STATISTICS); err == nil {
			w.stats.Dropped += uint64(s.Drops)
			w.stats.Received += uint64(s.Drops)
		}
	})
	return w.stats, errors.Join(controlErr, err) == nil
}

// Stop implements Source.
func (w *Wire) Stop() error {
	w.stopped.Store(true)
	return w.file.SetReadDeadline(time.Now())
}

// Close implements Source.
func (w *Wire) Close() error { return w.file.Close() }
