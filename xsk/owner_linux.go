package xsk

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Of include/uapi/linux/sock_diag.h and xdp_diag.h.
const (
	sockDiagByFamily = 20 // SOCK_DIAG_BY_FAMILY
	xdpShowInfo      = 1  // XDP_SHOW_INFO
	xdpDiagInfo      = 1  // XDP_DIAG_INFO: u32 ifindex, u32 queue
	xdpDiagReqLen    = 20 // struct xdp_diag_req
	xdpDiagMsgLen    = 16 // struct xdp_diag_msg: the inode at offset 4
)

// fillRingOffset is XDP_UMEM_PGOFF_FILL_RING as a line of /proc/PID/maps has it.
const fillRingOffset = "100000000"

// Owner asks the kernel for the AF_XDP socket on the queue (sock_diag) and
// searches /proc for the process that has it open. A kernel without
// CONFIG_XDP_SOCKETS_DIAG does not tell; then every process of this network
// namespace that has a fill ring mapped may be it. It returns "" when no
// process is found, or none that we may look into.
func (linux) Owner(ifindex, queue int) string {
	inode, err := queueInode(uint32(ifindex), uint32(queue))
	if err == nil && inode != 0 {
		return socketHolder(inode)
	}
	if who := ringHolders(); len(who) > 0 {
		return "one of " + strings.Join(who, ", ")
	}
	return ""
}

// socketHolder names the process that has a socket open.
func socketHolder(inode uint32) string {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	want := fmt.Sprintf("socket:[%d]", inode)
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && target == want {
			return describe(strings.Split(l, "/")[2])
		}
	}
	return fmt.Sprintf("socket inode %d, of no visible process", inode)
}

// ringHolders names the processes with AF_XDP sockets in our namespace.
func ringHolders() []string {
	ours, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return nil
	}
	var who []string
	files, _ := filepath.Glob("/proc/[0-9]*/maps")
	for _, f := range files {
		pid := strings.Split(f, "/")[2]
		// Another process is where its first thread is. This one may ask on behalf
		// of any of its threads, and has the rings of the socket that asks.
		self := pid == strconv.Itoa(os.Getpid())
		theirs, err := os.Readlink("/proc/" + pid + "/ns/net")
		if err != nil || theirs != ours && !self {
			continue
		}
		if n := fillRings(f); n > 1 || n == 1 && !self {
			who = append(who, describe(pid))
		}
	}
	return who
}

// fillRings counts the fill rings in a file of memory mappings.
func fillRings(maps string) int {
	b, err := os.ReadFile(maps)
	if err != nil {
		return 0 // gone, or not ours to see
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 6 && f[2] == fillRingOffset && strings.HasPrefix(f[5], "socket:") {
			n++
		}
	}
	return n
}

// maxCommand bounds how much of a command line is told, in bytes.
const maxCommand = 200

// describe names a process with its command line, on one line whatever is in that.
func describe(pid string) string {
	line, _ := os.ReadFile("/proc/" + pid + "/cmdline") // gone: the number is all there is
	text := strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
	quoted := strconv.QuoteToASCII(text[:min(len(text), maxCommand)])
	return fmt.Sprintf("pid %s (%s)", pid, quoted[1:len(quoted)-1])
}

// queueInode returns the inode of the AF_XDP socket on a queue, 0 for none.
func queueInode(ifindex, queue uint32) (uint32, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	ne := binary.NativeEndian
	req := make([]byte, unix.NLMSG_HDRLEN+xdpDiagReqLen)
	ne.PutUint32(req[0:], uint32(len(req)))
	ne.PutUint16(req[4:], sockDiagByFamily)
	ne.PutUint16(req[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	req[unix.NLMSG_HDRLEN] = unix.AF_XDP
	ne.PutUint32(req[unix.NLMSG_HDRLEN+8:], xdpShowInfo)
	if err := unix.Sendto(fd, req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	buf := make([]byte, 1<<16)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return 0, err
		}
		inode, done := findQueue(buf[:n], ifindex, queue)
		if done || inode != 0 {
			return inode, nil
		}
	}
}

// findQueue looks for the queue in one datagram of the kernel's answer, and
// reports whether the answer ends with it.
func findQueue(b []byte, ifindex, queue uint32) (inode uint32, done bool) {
	ne := binary.NativeEndian
	for len(b) >= unix.NLMSG_HDRLEN {
		size := int(ne.Uint32(b))
		kind := ne.Uint16(b[4:])
		if size < unix.NLMSG_HDRLEN || size > len(b) ||
			kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR {
			return 0, true
		}
		msg := b[unix.NLMSG_HDRLEN:size]
		b = b[min(len(b), (size+3)&^3):]
		if len(msg) < xdpDiagMsgLen {
			continue
		}
		for attrs := msg[xdpDiagMsgLen:]; len(attrs) >= 4; {
			n := int(ne.Uint16(attrs))
			if n < 4 || n > len(attrs) {
				break
			}
			if ne.Uint16(attrs[2:]) == xdpDiagInfo && n >= 12 &&
				ne.Uint32(attrs[4:]) == ifindex && ne.Uint32(attrs[8:]) == queue {
				return ne.Uint32(msg[4:]), false
			}
			attrs = attrs[min(len(attrs), (n+3)&^3):]
		}
	}
	return 0, false
}
