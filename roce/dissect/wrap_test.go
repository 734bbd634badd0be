package dissect

import (
	"encoding/binary"
	"os"
	"testing"

	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// captures are files of other programs.
const captures = "../wire/testdata/captures"

// frames are those of a capture.
func frames(t testing.TB, name string) [][]byte {
	t.Helper()
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	list, err := roctest.Pcap(file)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// join is parts one after the other.
func join(parts ...[]byte) (b []byte) {
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// ethernetHeader is one with an EtherType.
func ethernetHeader(t uint16) []byte {
	b := []byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8}
	return binary.BigEndian.AppendUint16(b, t)
}

// ipv4Header is one before n bytes.
func ipv4Header(proto byte, n int) []byte {
	b := make([]byte, ipv4Len)
	b[0], b[8], b[9] = 0x45, 64, proto
	binary.BigEndian.PutUint16(b[2:], uint16(ipv4Len+n))
	copy(b[12:], []byte{10, 9, 9, 1, 10, 9, 9, 2})
	return b
}

// udpHeader is one before n bytes.
func udpHeader(port uint16, n int) []byte {
	b := binary.BigEndian.AppendUint16(nil, 55555)
	b = binary.BigEndian.AppendUint16(b, port)
	b = binary.BigEndian.AppendUint16(b, uint16(udpLen+n))
	return append(b, 0, 0)
}

// A wrapping puts a frame of Ethernet with IPv4 into something else.
type wrapping struct {
	name   string
	link   Link
	layers string // first letters of what is around the BTH
	wrap   func(f []byte) []byte
}

func wrappings() []wrapping {
	tag := func(t uint16, id byte) []byte { return []byte{byte(t >> 8), byte(t), 0x60, id} }
	tagged := func(f []byte, tags ...[]byte) []byte {
		return join(f[:12], join(tags...), f[12:])
	}
	outer := func(proto byte, b []byte) []byte {
		return join(ethernetHeader(etherIPv4), ipv4Header(proto, len(b)), b)
	}
	return []wrapping{
		{"Ethernet", LinkEthernet, "Ethernet IPv4 UDP", func(f []byte) []byte { return f }},
		{"VLAN", LinkEthernet, "Ethernet VLAN IPv4 UDP", func(f []byte) []byte {
			return tagged(f, tag(etherVLAN, 7))
		}},
		{"QinQ", LinkEthernet, "Ethernet QinQ VLAN IPv4 UDP", func(f []byte) []byte {
			return tagged(f, tag(etherQinQ, 7), tag(etherVLAN, 8))
		}},
		{"raw IP", LinkRaw, "IPv4 UDP", func(f []byte) []byte { return f[14:] }},
		{"IPv4", LinkIPv4, "IPv4 UDP", func(f []byte) []byte { return f[14:] }},
		{"loopback", LinkNull, "BSD loopback IPv4 UDP", func(f []byte) []byte {
			return join([]byte{2, 0, 0, 0}, f[14:])
		}},
		{"cooked", LinkCooked, "Linux cooked v1 IPv4 UDP", func(f []byte) []byte {
			return join(make([]byte, 14), f[12:])
		}},
		{"cooked 2", LinkCooked2, "Linux cooked v2 IPv4 UDP", func(f []byte) []byte {
			return join(f[12:14], make([]byte, 18), f[14:])
		}},
		{"VXLAN", LinkEthernet, "Ethernet IPv4 UDP VXLAN Ethernet IPv4 UDP", func(f []byte) []byte {
			b := join([]byte{8, 0, 0, 0, 0, 0, 42, 0}, f)
			return outer(protoUDP, join(udpHeader(portVXLAN, len(b)), b))
		}},
		{"GRE", LinkEthernet, "Ethernet IPv4 GRE IPv4 UDP", func(f []byte) []byte {
			return outer(protoGRE, join([]byte{0x20, 0, 8, 0, 0, 0, 0, 1}, f[14:]))
		}},
		{
			"GRE with Ethernet", LinkEthernet, "Ethernet IPv4 GRE Ethernet IPv4 UDP",
			func(f []byte) []byte { return outer(protoGRE, join([]byte{0, 0, 0x65, 0x58}, f)) },
		},
		{"ERSPAN 1", LinkEthernet, "Ethernet IPv4 GRE Ethernet IPv4 UDP", func(f []byte) []byte {
			return outer(protoGRE, join([]byte{0, 0, 0x88, 0xbe}, f))
		}},
		{
			"ERSPAN 2", LinkEthernet, "Ethernet IPv4 GRE ERSPAN Ethernet IPv4 UDP",
			func(f []byte) []byte {
				return outer(protoGRE, join([]byte{0x10, 0, 0x88, 0xbe, 0, 0, 0, 9},
					[]byte{0x10, 5, 0, 3, 0, 0, 0, 0}, f))
			},
		},
		{
			"ERSPAN 3", LinkEthernet, "Ethernet IPv4 GRE ERSPAN Ethernet IPv4 UDP",
			func(f []byte) []byte {
				return outer(protoGRE, join([]byte{0x10, 0, 0x22, 0xeb, 0, 0, 0, 9},
					[]byte{0x20, 5, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1}, make([]byte, 8), f))
			},
		},
		{"IP in IP", LinkRaw, "IPv4 IPv4 UDP", func(f []byte) []byte {
			return join(ipv4Header(protoIPv4, len(f)-14), f[14:])
		}},
		{"ERF", LinkERF, "ERF Ethernet IPv4 UDP", func(f []byte) []byte {
			h := make([]byte, 18)
			h[8], h[9] = 2, 4
			binary.BigEndian.PutUint16(h[10:], uint16(len(h)+len(f)))
			binary.BigEndian.PutUint16(h[14:], uint16(len(f)))
			return join(h, f)
		}},
	}
}

// nativePacket is a native packet that is right.
func nativePacket(t testing.TB) []byte {
	t.Helper()
	b := make([]byte, 0, 64)
	lrh := wire.LRH{LNH: wire.LNHLocal, DLID: 2, SLID: 1, PktLen: 8}
	b = append(b, make([]byte, wire.LRHLen+wire.BTHLen)...)
	lrh.Put(b)
	bth := wire.BTH{Opcode: wire.RCSendOnly, PKey: 0xffff, DestQP: 0x11, PSN: 100, PadCnt: 3}
	bth.Put(b[wire.LRHLen:])
	b = append(b, "hello\x00\x00\x00"...)
	b = binary.LittleEndian.AppendUint32(b, wire.ICRC(wire.FramingNative, b, nil))
	b = append(b, make([]byte, wire.VCRCLen)...)
	wire.PutVCRC(b)
	return b
}
