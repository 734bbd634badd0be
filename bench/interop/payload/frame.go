package payload

import "encoding/binary"

// The place of what tells a RoCEv2 packet, in a frame without VLAN tags.
const (
	offEtherType = 12
	offIPv4      = 14 // version and header length
	offProtocol4 = 14 + 9
	offNext6     = 14 + 6
	udpHeader6   = 14 + 40
	protocolUDP  = 17
	roceUDPPort  = 4791
)

// IsRoCE reports whether a frame is sent to the UDP port of RoCEv2. It does not ask
// the decoder, which is what is tested.
func IsRoCE(frame []byte) bool {
	if len(frame) < udpHeader6+8 {
		return false
	}
	var udp []byte
	switch binary.BigEndian.Uint16(frame[offEtherType:]) {
	case 0x0800:
		if frame[offProtocol4] != protocolUDP {
			return false
		}
		udp = frame[offIPv4+int(frame[offIPv4]&15)*4:]
	case 0x86dd:
		if frame[offNext6] != protocolUDP {
			return false
		}
		udp = frame[udpHeader6:]
	default:
		return false
	}
	return len(udp) >= 4 && binary.BigEndian.Uint16(udp[2:]) == roceUDPPort
}
