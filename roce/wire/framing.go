package wire

import "fmt"

// Framing is what lies around the transport packet.
type Framing uint8

// The framings.
const (
	FramingNone      Framing = iota
	FramingV2IPv4            // RoCE v2: Ethernet, IPv4, UDP
	FramingV2IPv6            // RoCE v2: Ethernet, IPv6, UDP
	FramingV1                // RoCE v1: Ethernet, GRH
	FramingNative            // InfiniBand: LRH
	FramingNativeGRH         // InfiniBand: LRH, GRH

	numFramings = iota
)

// Numbers that say that a frame is RoCE.
const (
	UDPPort     = 4791   // UDP destination port of RoCE v2 (IANA "roce")
	EtherTypeV1 = 0x8915 // EtherType of RoCE v1
)

// Lengths and numbers of the headers around the transport packet.
const (
	ethLen  = 14
	vlanLen = 4
	ipv4Len = 20
	ipv6Len = 40
	udpLen  = 8

	etherTypeIPv4 = 0x0800
	etherTypeIPv6 = 0x86DD
	protoUDP      = 17

	ipv4Fragment = 0x3fff // more fragments, or an offset
)

// framingInfo names each framing and gives the bytes between the link header
// and the BTH; of native framings the link header is the LRH, and it counts.
var framingInfo = [numFramings]struct {
	name   string
	netLen uint8
}{
	FramingNone:      {"none", 0},
	FramingV2IPv4:    {"rocev2-ipv4", ipv4Len + udpLen},
	FramingV2IPv6:    {"rocev2-ipv6", ipv6Len + udpLen},
	FramingV1:        {"rocev1", GRHLen},
	FramingNative:    {"native", LRHLen},
	FramingNativeGRH: {"native-grh", LRHLen + GRHLen},
}

// String names the framing.
func (f Framing) String() string {
	if int(f) < len(framingInfo) {
		return framingInfo[f].name
	}
	return fmt.Sprintf("Framing(%d)", uint8(f))
}

// netLen is the number of bytes that the ICRC covers before the BTH.
func (f Framing) netLen() int {
	if int(f) < len(framingInfo) {
		return int(framingInfo[f].netLen)
	}
	return 0
}
