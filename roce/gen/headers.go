package gen

import (
	"encoding/binary"
	"math/bits"

	"xroce/roce/wire"
)

// Lengths and numbers of the headers below a payload.
const (
	ethLen  = 14
	vlanLen = 4
	ipv4Len = 20
	ipv6Len = 40
	udpLen  = 8

	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd
	protoUDP = 17
)

// A stack is where the headers of a frame lie.
type stack struct {
	tag     int // offset of the control information of the inner VLAN tag, 0 for none
	net     int // offset of the IP header, or GRH; 0 for none
	udp     int // offset of the UDP header; 0 for none
	payload int // offset of what is behind these
	ipv6    bool
	ipSum   uint64 // of the words of an IPv4 header that does not vary, without the length
}

// putHeaders writes the headers of a UDP or Ethernet frame, with lengths and checksums zero.
func putHeaders(b []byte, c *Config) (s stack) {
	p := &c.Path
	copy(b, p.DstMAC[:])
	copy(b[6:], p.SrcMAC[:])
	n := ethLen - 2
	if tags := p.Tags.Put(b[n:]); tags > 0 {
		n += tags
		s.tag = n - 2
	}
	if c.Kind == KindEthernet {
		binary.BigEndian.PutUint16(b[n:], c.EtherType)
		s.payload = n + 2
		return s
	}
	s.net = n + 2
	h := b[s.net:]
	if p.Dst.IsIPv4() {
		binary.BigEndian.PutUint16(b[n:], typeIPv4)
		src, dst := p.Src.IPv4(), p.Dst.IPv4()
		h[0], h[1], h[6], h[8], h[9] = 0x45, p.TClass, 0x40, p.HopLimit, protoUDP
		copy(h[12:], src[:])
		copy(h[16:], dst[:])
		s.udp = s.net + ipv4Len
		s.ipSum = sum16(h[:ipv4Len])
	} else {
		binary.BigEndian.PutUint16(b[n:], typeIPv6)
		wire.GRH{
			IPVer: 6, TClass: p.TClass, FlowLabel: p.FlowLabel, NxtHdr: protoUDP,
			HopLmt: p.HopLimit, SGID: p.Src, DGID: p.Dst,
		}.Put(h)
		s.udp, s.ipv6 = s.net+ipv6Len, true
	}
	binary.BigEndian.PutUint16(b[s.udp:], p.SrcPort)
	binary.BigEndian.PutUint16(b[s.udp+2:], c.DstPort)
	s.payload = s.udp + udpLen
	return s
}

// finishUDP writes lengths and checksums. UDP over IPv4 has no checksum (RFC 768), over IPv6 it
// must have one (RFC 8200, 8.1).
func (s *stack) finishUDP(frame []byte) {
	n := len(frame) - s.udp
	udp := frame[s.udp:]
	binary.BigEndian.PutUint16(udp[4:], uint16(n))
	udp[6], udp[7] = 0, 0
	if !s.ipv6 {
		s.finishIPv4(frame)
		return
	}
	binary.BigEndian.PutUint16(frame[s.net+4:], uint16(n))
	sum := sum16(frame[s.net+8:s.udp]) + uint64(n) + protoUDP + sum16(udp)
	check := ^fold16(sum)
	if check == 0 {
		check = 0xffff
	}
	binary.BigEndian.PutUint16(udp[6:], check)
}

// finishSame writes the lengths and the checksum of a UDP datagram over IPv4 none of whose headers
// varies. It reads nothing of the frame: what was just written in other pieces is slow to read.
func (s *stack) finishSame(frame []byte) {
	ip := len(frame) - s.net
	h := (*[ipv4Len]byte)(frame[s.net:])
	binary.BigEndian.PutUint16(h[2:], uint16(ip))
	binary.BigEndian.PutUint16(h[10:], ^fold16(s.ipSum+uint64(ip)))
	binary.BigEndian.PutUint16(frame[s.udp+4:], uint16(ip-ipv4Len))
}

// finishIPv4 writes the length and the checksum of the IPv4 header.
func (s *stack) finishIPv4(frame []byte) {
	h := (*[ipv4Len]byte)(frame[s.net:])
	binary.BigEndian.PutUint16(h[2:], uint16(len(frame)-s.net))
	h[10], h[11] = 0, 0
	binary.BigEndian.PutUint16(h[10:], ^fold16(sum16(h[:])))
}

// sum16 sums words of 16 bits for the checksum of RFC 1071. It takes four at a time: carries
// between them are as good as carries out of them.
func sum16(b []byte) (sum uint64) {
	var carry uint64
	for len(b) >= 8 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
		b = b[8:]
	}
	var last [8]byte
	copy(last[:], b)
	sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(last[:]), carry)
	sum, carry = bits.Add64(sum, 0, carry)
	return sum>>32 + sum&0xffffffff + carry
}

// fold16 makes a sum one word.
func fold16(sum uint64) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}
