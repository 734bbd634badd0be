package xsk

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// diagMsg makes one message of the kernel's answer to a dump of AF_XDP sockets.
func diagMsg(kind uint16, inode, ifindex, queue uint32) []byte {
	ne := binary.NativeEndian
	b := make([]byte, unix.NLMSG_HDRLEN+xdpDiagMsgLen+8+12)
	ne.PutUint32(b, uint32(len(b)))
	ne.PutUint16(b[4:], kind)
	ne.PutUint32(b[unix.NLMSG_HDRLEN+4:], inode)
	attrs := b[unix.NLMSG_HDRLEN+xdpDiagMsgLen:]
	ne.PutUint16(attrs, 8) // XDP_DIAG_UID
	ne.PutUint16(attrs[2:], 2)
	ne.PutUint16(attrs[8:], 12) // XDP_DIAG_INFO
	ne.PutUint16(attrs[10:], xdpDiagInfo)
	ne.PutUint32(attrs[12:], ifindex)
	ne.PutUint32(attrs[16:], queue)
	return b
}

func TestFindQueue(t *testing.T) {
	answer := append(diagMsg(sockDiagByFamily, 70, 3, 0), diagMsg(sockDiagByFamily, 71, 4, 1)...)
	answer = append(answer, diagMsg(unix.NLMSG_DONE, 72, 5, 0)...)
	for _, tc := range []struct {
		ifindex, queue, inode uint32
		done                  bool
	}{
		{3, 0, 70, false}, {4, 1, 71, false}, {4, 0, 0, true}, {5, 0, 0, true},
	} {
		inode, done := findQueue(answer, tc.ifindex, tc.queue)
		if inode != tc.inode || done != tc.done {
			t.Errorf("ifindex %d queue %d: inode %d, done %t, want %d, %t",
				tc.ifindex, tc.queue, inode, done, tc.inode, tc.done)
		}
	}
	for n := range answer { // no prefix makes it read past the end
		findQueue(answer[:n], 9, 9)
	}
}

func TestSocketHolder(t *testing.T) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	want := "pid " + strconv.Itoa(os.Getpid()) + " ("
	if got := socketHolder(uint32(st.Ino)); !strings.HasPrefix(got, want) {
		t.Errorf("holder of an open socket: %q, want %q", got, want)
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	if got := socketHolder(uint32(st.Ino)); !strings.Contains(got, "no visible process") {
		t.Errorf("holder of a closed socket: %q", got)
	}
}
