package inner

import (
	"encoding/binary"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/encap"
)

// tcpPacket makes a packet of TCP with n bytes of payload, as a frame with tags, or alone.
func tcpPacket(t testing.TB, v6 bool, tags int, n int, change func(*layers.TCP)) []byte {
	t.Helper()
	payload := make([]byte, n)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	tcp := &layers.TCP{SrcPort: 1, DstPort: 2, Seq: 1<<32 - 1000, ACK: true, Window: 99}
	if change != nil {
		change(tcp)
	}
	return packet(t, v6, tags, layers.IPProtocolTCP, tcp, gopacket.Payload(payload))
}

// packet makes an IP packet, tags below 0, or a frame with so many tags.
func packet(
	t testing.TB, v6 bool, tags int, protocol layers.IPProtocol, rest ...gopacket.SerializableLayer,
) []byte {
	t.Helper()
	var network gopacket.NetworkLayer
	etherType := layers.EthernetTypeIPv4
	if v6 {
		etherType = layers.EthernetTypeIPv6
		network = &layers.IPv6{
			Version: 6, NextHeader: protocol, HopLimit: 64, SrcIP: make([]byte, 16),
			DstIP: append(make([]byte, 15), 1),
		}
	} else {
		network = &layers.IPv4{
			Version: 4, IHL: 5, Id: 65535, TTL: 64, Protocol: protocol, SrcIP: []byte{192, 0, 2, 1},
			DstIP: []byte{192, 0, 2, 2},
		}
	}
	for _, l := range rest {
		if c, ok := l.(interface {
			SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
		}); ok {
			if err := c.SetNetworkLayerForChecksum(network); err != nil {
				t.Fatal(err)
			}
		}
	}
	var list []gopacket.SerializableLayer
	if tags >= 0 {
		outer := etherType
		if tags > 0 {
			outer = layers.EthernetTypeDot1Q
		}
		list = append(list, &layers.Ethernet{
			SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: outer,
		})
	}
	for i := range max(tags, 0) {
		next := layers.EthernetTypeDot1Q
		if i == tags-1 {
			next = etherType
		}
		list = append(list, &layers.Dot1Q{VLANIdentifier: uint16(i + 5), Type: next})
	}
	list = append(list, network.(gopacket.SerializableLayer))
	b := gopacket.NewSerializeBuffer()
	o := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(b, o, append(list, rest...)...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// kindFor is what packet makes.
func kindFor(v6 bool, tags int) encap.Kind {
	switch {
	case tags >= 0:
		return encap.Ethernet
	case v6:
		return encap.IPv6
	}
	return encap.IPv4
}

// slowSum is the checksum of RFC 1071, word by word.
func slowSum(b []byte) uint16 {
	s := uint32(0)
	for ; len(b) > 1; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
		s = s>>16 + s&0xffff
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}

// checksums reports whether the checksums of IP and the transport are right.
func checksums(b []byte, h *Headers) bool {
	if h.Version == 4 && slowSum(b[h.L3:h.L4]) != 0 {
		return false
	}
	ip, l4 := b[h.L3:], b[h.L4:h.End]
	pseudo := append([]byte{}, ip[12:20]...)
	if h.Version == 6 {
		pseudo = append([]byte{}, ip[8:40]...)
	}
	pseudo = append(pseudo, 0, h.Protocol, byte(len(l4)>>8), byte(len(l4)))
	return slowSum(append(pseudo, l4...)) == 0
}

// uncut makes of a packet of TCP what the kernel hands over: the checksum is that of the
// pseudo-header alone.
func uncut(b []byte, k encap.Kind, size int) VNet {
	h := Parse(k, b)
	at, n := h.tcp(b)
	binary.BigEndian.PutUint16(b[at+tcpChecksum:], fold(h.pseudo(b, h.End-h.L4)))
	v := VNet{
		Flags: NeedsChecksum, ChecksumStart: uint16(at), ChecksumOffset: tcpChecksum,
		GSO: GSOTCPv4, GSOSize: uint16(size), HeaderLen: uint16(at + n),
	}
	if h.Version == 6 {
		v.GSO = GSOTCPv6
	}
	return v
}
