package encap

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"xroce/roce/wire"
)

// template is one for each format, with all the room there is, or with that of UD at a path
// MTU of 4096.
func template(f Format) *Template {
	t := &Template{
		Format: f, Room: f.Spec().Room, VL: 3, SL: 5, DLID: 2, SLID: 1, TClass: 0x28,
		FlowLabel: 0x12345, HopLimit: 64, Switch: 7, Checks: TCPGood | IPGood,
	}
	t.SGID[0], t.SGID[1], t.SGID[15] = 0xfe, 0x80, 0xaa
	t.DGID[0], t.DGID[1], t.DGID[15] = 0xfe, 0x80, 0xbb
	if f.Spec().Carriers&Datagrams != 0 {
		t.Room = maxUD
	}
	return t
}

// decode reads a packet of a format.
func decode(p *Packet, f Format, b []byte) Reason {
	if f <= RawGRH {
		return p.DecodeNative(b, nil)
	}
	return p.Decode(f, b)
}

// datagram is n bytes of a kind, which say of themselves what is so: n is not below MinLen.
func datagram(k Kind, n int, r *rand.Rand) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	switch k {
	case Ethernet:
		b[12], b[13] = 0x88, 0x99 // nobody's, so that nothing inside looks encapsulated
	case IPv4:
		b[0], b[9] = 0x45, 99
		binary.BigEndian.PutUint16(b[2:], uint16(n))
	case IPv6:
		b[0], b[6] = 0x60, 99
		binary.BigEndian.PutUint16(b[4:], uint16(n-40))
	case ARP, RARP:
		b[4], b[5] = 6, 4
	}
	return b
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// vectors are packets whose bytes were put together by hand from the layouts: each header in a
// line of its own, the field before it. The VCRC is that of a bit by bit program that is not
// ours: most significant bit first, over bytes that were turned around.
var vectors = []struct {
	name     string
	format   Format
	kind     Kind
	datagram string
	packet   string
}{
	{
		"Ethernet in a raw packet", Raw, Ethernet, goldenFrame,
		"30 50 0002 000f 0001" + // VL 3, LVer 0; SL 5, LNH 0; DLID; 15 words; SLID (IBA 7.7)
			"00 07 6558" + // RWH: pad count 3 is told (ours); transparent bridging (RFC 1701)
			goldenFrame + "000000" + "7449", // padding; VCRC (IBA 7.8.2)
	},
	{
		"IPv4 in a raw packet", Raw, IPv4, goldenIPv4,
		"30 50 0002 000b 0001" + "00 05 0800" + goldenIPv4 + "00" + "b858",
	},
	{
		"raw IPv6", RawIPv6, IPv6, goldenIPv6,
		"30 51 0002 000f 0001" + // LNH 1
			goldenIPv6 + "00" + "e844",
	},
	{
		"Ethernet behind a GRH", RawGRH, Ethernet, goldenFrame,
		"30 53 0002 0018 0001" + // LNH 3
			"6 28 12345 002d 8f 40" + // GRH (IBA 8.3): next header 143, Ethernet (RFC 8986)
			goldenGIDs + goldenFrame + "000000" + "c7a3",
	},
	{
		"IPv4 behind a GRH", RawGRH, IPv4, goldenIPv4,
		"30 53 0002 0014 0001" + "6 28 12345 001f 04 40" + // 4: IPv4 (RFC 2003)
			goldenGIDs + goldenIPv4 + "00" + "2612",
	},
	{
		"Ethernet over InfiniBand", EoIB, Ethernet, goldenFrame,
		"c5 00 0000" + // signature 3, version 0, TCP good, IP good; no segments (eib.h)
			goldenFrame,
	},
	{
		"IPv4 over InfiniBand", IPoIB, IPv4, goldenIPv4,
		"0800 0000" + goldenIPv4, // type, reserved (RFC 4391 section 6)
	},
	{
		"IPv6 over InfiniBand, connected", IPoIBConnected, IPv6, goldenIPv6,
		"86dd 0000" + goldenIPv6, // RFC 4755
	},
	{
		"virtual switch", VNIC, Ethernet, goldenFrame,
		"0000 0007 c5000000" + // reserved, switch; word
			goldenFrame + "0000" + "02", // padding to 56 bytes with the tail, which counts 2
	},
}

const (
	// An Ethernet header (0x0800), IPv4 with its checksum, UDP without, "abc".
	goldenFrame = "020000000002 020000000001 0800" + goldenIPv4
	goldenIPv4  = "4500001f 00004000 401126cc 0a000001 0a000002 c0019c40000b0000 616263"
	goldenIPv6  = "60000000 000b1140 fd000000000000000000000000000001" +
		"fd000000000000000000000000000002 c0019c40000be52e 616263"
	goldenGIDs = "fe8000000000000000000000000000aa fe8000000000000000000000000000bb"
)

// packetOf is a packet of a format with a datagram of n bytes in it.
func packetOf(tb testing.TB, f Format, k Kind, n int) []byte {
	tb.Helper()
	t := template(f)
	frame := make([]byte, t.Room)
	size, r := t.Put(frame, k, datagram(k, n, rand.New(rand.NewPCG(1, 2))))
	if r != OK {
		tb.Fatalf("%s of %d bytes in %s: %s", k, n, f, r)
	}
	return frame[:size]
}

// nativeOf is a packet with its VCRC made right.
func nativeOf(b []byte) []byte {
	b = append(b, make([]byte, wire.VCRCLen)...)
	wire.PutVCRC(b)
	return b
}
