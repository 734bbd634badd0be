package wire

import "fmt"

// MTU is a path MTU code as verbs and connection management carry it:
// 1 to 5. Zero is no MTU.
type MTU uint8

// The path MTUs.
const (
	MTU256  MTU = 1
	MTU512  MTU = 2
	MTU1024 MTU = 3
	MTU2048 MTU = 4
	MTU4096 MTU = 5
)

// MTUOverhead is what ActiveMTU takes off the netdevice MTU: IPv6 40, UDP 8,
// BTH 12, RETH 16 and ICRC 4 bytes. Soft-RoCE takes the same (kernel
// drivers/infiniband/sw/rxe/rxe_hdr.h, RXE_MAX_HDR_LENGTH), so both ends of a
// link come to the same MTU; the RDMA core of Linux takes 96. An IPv6 WRITE only
// with immediate that fills the path MTU is 4 bytes longer than this allows for.
const MTUOverhead = 80

// Bytes is the payload limit in bytes, 0 for a code that is not defined.
func (m MTU) Bytes() int {
	if m < MTU256 || m > MTU4096 {
		return 0
	}
	return 128 << m
}

// MTUFromBytes is the code of exactly n bytes. ok is false when there is none.
func MTUFromBytes(n int) (m MTU, ok bool) {
	for m := MTU256; m <= MTU4096; m++ {
		if m.Bytes() == n {
			return m, true
		}
	}
	return 0, false
}

// ActiveMTU is the largest path MTU that fits a network device whose MTU is
// netdevMTU bytes (without the Ethernet header), 0 when not even 256 fits.
func ActiveMTU(netdevMTU int) MTU {
	for m := MTU4096; m >= MTU256; m-- {
		if m.Bytes()+MTUOverhead <= netdevMTU {
			return m
		}
	}
	return 0
}

// PathBytes is the largest payload of a packet that fits a network device whose MTU is netdevMTU
// bytes, a multiple of 4 that is no path MTU in most cases, 0 when not even 256 fits.
func PathBytes(netdevMTU int) int {
	n := min(netdevMTU-MTUOverhead, MTU4096.Bytes()) &^ 3
	if n < MTU256.Bytes() {
		return 0
	}
	return n
}

// String is the number of bytes.
func (m MTU) String() string {
	if n := m.Bytes(); n != 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("MTU(%d)", uint8(m))
}
