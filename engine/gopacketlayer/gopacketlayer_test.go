package gopacketlayer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/roce/wire"
)

// readCapture returns the frames of a classic little-endian pcap file.
func readCapture(t *testing.T, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const fileHeader, recordHeader = 24, 16
	if len(data) < fileHeader || binary.LittleEndian.Uint32(data) != 0xa1b2c3d4 {
		t.Fatalf("%s is no little-endian pcap file", name)
	}
	var frames [][]byte
	for data = data[fileHeader:]; len(data) != 0; {
		n := int(binary.LittleEndian.Uint32(data[8:])) + recordHeader
		frames = append(frames, data[recordHeader:n])
		data = data[n:]
	}
	return frames
}

// TestCaptures decodes Ethernet, IP and UDP of every captured packet with
// gopacket, which knows nothing of package wire, and compares.
func TestCaptures(t *testing.T) {
	Register()
	Register() // twice does not matter
	names, _ := filepath.Glob("../../roce/wire/testdata/captures/*.pcap")
	packets, ipv6 := 0, 0
	for _, name := range names {
		for i, frame := range readCapture(t, name) {
			var p wire.Packet
			if r := p.Decode(frame, nil); r != wire.OK {
				t.Fatalf("%s frame %d: %s", name, i+1, r)
			}
			g := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.NoCopy)
			if e := g.ErrorLayer(); e != nil {
				t.Fatalf("%s frame %d: %v", name, i+1, e.Error())
			}
			compareLink(t, g, &p)
			compareTransport(t, g, &p)
			if t.Failed() {
				t.Fatalf("%s frame %d", name, i+1)
			}
			packets++
			if p.Framing == wire.FramingV2IPv6 {
				ipv6++
			}
		}
	}
	if packets < 1000 || ipv6 == 0 {
		t.Errorf("compared %d packets, %d of them IPv6", packets, ipv6)
	}
}

// compareLink compares everything before the BTH.
func compareLink(t *testing.T, g gopacket.Packet, p *wire.Packet) {
	t.Helper()
	eth := g.LinkLayer().(*layers.Ethernet)
	if !bytes.Equal(eth.SrcMAC, p.SrcMAC[:]) || !bytes.Equal(eth.DstMAC, p.DstMAC[:]) {
		t.Errorf("MAC %s > %s, wire has %x > %x", eth.SrcMAC, eth.DstMAC, p.SrcMAC, p.DstMAC)
	}
	var src, dst []byte
	var class, hops uint8
	var id uint16
	var flow uint32
	switch ip := g.NetworkLayer().(type) {
	case *layers.IPv4:
		src, dst, class, hops, id = ip.SrcIP, ip.DstIP, ip.TOS, ip.TTL, ip.Id
	case *layers.IPv6:
		src, dst, class, hops, flow = ip.SrcIP, ip.DstIP, ip.TrafficClass, ip.HopLimit, ip.FlowLabel
	}
	if addr(src) != p.Src.Addr() || addr(dst) != p.Dst.Addr() {
		t.Errorf("IP %s > %s, wire has %s > %s", addr(src), addr(dst), p.Src, p.Dst)
	}
	if class != p.TClass || hops != p.HopLimit || id != p.IPID || flow != p.FlowLabel {
		t.Errorf("class %d, hops %d, ID %d, flow %d, wire has %d, %d, %d, %d", class, hops, id,
			flow, p.TClass, p.HopLimit, p.IPID, p.FlowLabel)
	}
	udp := g.TransportLayer().(*layers.UDP)
	if uint16(udp.SrcPort) != p.SrcPort || udp.DstPort != wire.UDPPort ||
		len(udp.Payload) != p.TransportLen() {
		t.Errorf("UDP %s > %s, %d bytes, wire has %d, %d bytes", udp.SrcPort, udp.DstPort,
			len(udp.Payload), p.SrcPort, p.TransportLen())
	}
}

func addr(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}

// compareTransport compares BTH, extended headers, payload and ICRC.
func compareTransport(t *testing.T, g gopacket.Packet, p *wire.Packet) {
	t.Helper()
	bth := g.Layer(LayerTypeBTH).(*BTH)
	if bth.BTH != p.BTH || bth.Spec != p.Spec || bth.ICRC != p.ICRC() ||
		len(bth.Pad) != int(p.BTH.PadCnt) {
		t.Errorf("%s, wire has %s", bth, p.BTH)
	}
	header(t, g, LayerTypeDETH, p.Spec.Has(wire.HasDETH), p.DETH())
	header(t, g, LayerTypeRETH, p.Spec.Has(wire.HasRETH), p.RETH())
	header(t, g, LayerTypeAtomicETH, p.Spec.Has(wire.HasAtomicETH), p.AtomicETH())
	header(t, g, LayerTypeAETH, p.Spec.Has(wire.HasAETH), p.AETH())
	header(t, g, LayerTypeAtomicAckETH, p.Spec.Has(wire.HasAtomicAckETH), p.AtomicAckETH())
	header(t, g, LayerTypeImmDt, p.Spec.Has(wire.HasImmDt), p.ImmDt())
	header(t, g, LayerTypeIETH, p.Spec.Has(wire.HasIETH), p.IETH())
	var payload []byte
	if l := g.ApplicationLayer(); l != nil {
		payload = l.Payload()
		if len(payload) == 0 {
			payload = l.LayerContents()
		}
	}
	if !bytes.Equal(payload, p.Payload) {
		t.Errorf("payload %x, wire has %x", payload, p.Payload)
	}
}

// header compares one extended header, or its absence.
func header[H interface {
	comparable
	String() string
}](t *testing.T, g gopacket.Packet, typ gopacket.LayerType, has bool, want H) {
	t.Helper()
	l := g.Layer(typ)
	if (l != nil) != has {
		t.Errorf("%s is there: %t, want %t", typ, l != nil, has)
		return
	}
	if has && l.(*Extended[H]).Header != want {
		t.Errorf("%s is %v, wire has %v", typ, l, want)
	}
}

// grhPacket is a RoCE v1 frame around the given transport bytes.
func grhPacket(transport []byte, nxtHdr uint8) []byte {
	b := make([]byte, 14+wire.GRHLen, 14+wire.GRHLen+len(transport)+8)
	binary.BigEndian.PutUint16(b[12:], wire.EtherTypeV1)
	wire.GRH{
		IPVer: 6, PayLen: uint16(len(transport)), NxtHdr: nxtHdr, HopLmt: 64,
		SGID: wire.GID{15: 1}, DGID: wire.GID{15: 2},
	}.Put(b[14:])
	return append(append(b, transport...), make([]byte, 8)...) // Ethernet padding
}

// TestEveryOpcode decodes a RoCE v1 packet of each opcode: one layer for each of
// its headers, in the order of the table, and the padding left out.
func TestEveryOpcode(t *testing.T) {
	Register()
	for op, spec := range wire.Opcodes() {
		transport := make([]byte, spec.TransportLen(5))
		wire.BTH{Opcode: op, PadCnt: 3}.Put(transport)
		for i := wire.BTHLen; i < len(transport); i++ {
			transport[i] = byte(i)
		}
		g := gopacket.NewPacket(grhPacket(transport, wire.GRHNxtHdrIBA), layers.LayerTypeEthernet,
			gopacket.Default)
		if e := g.ErrorLayer(); e != nil {
			t.Errorf("%s: %v", op, e.Error())
			continue
		}
		var got wire.HeaderSet
		for _, l := range g.Layers()[3:] {
			h := wire.Header(l.LayerType() - LayerTypeRDETH)
			if h < wire.Header(wire.NumHeaders) {
				got |= 1 << h
				if off := int(spec.Offsets[h]); l.LayerContents()[0] != byte(off) {
					t.Errorf("%s: %s starts with byte %d, want %d", op, h,
						l.LayerContents()[0], off)
				}
			}
		}
		if got != spec.Headers {
			t.Errorf("%s: layers %s, want %s", op, got, spec.Headers)
		}
		start := wire.BTHLen + int(spec.HeaderLen)
		if p := g.ApplicationLayer(); p == nil ||
			!bytes.Equal(p.LayerContents(), transport[start:start+5]) {
			t.Errorf("%s: payload %v", op, p)
		}
	}
}

// TestErrors: what is not a RoCE packet ends in an error layer, never a panic.
func TestErrors(t *testing.T) {
	Register()
	ack := make([]byte, wire.RCAck.Spec().TransportLen(0))
	wire.BTH{Opcode: wire.RCAck}.Put(ack)
	padded := bytes.Clone(ack)
	padded[1] |= 0x10
	tests := []struct {
		name  string
		frame []byte
		want  error
	}{
		{"good", grhPacket(ack, wire.GRHNxtHdrIBA), nil},
		{"not a BTH", grhPacket(ack, 17), nil},
		{"GRH cut", grhPacket(ack, wire.GRHNxtHdrIBA)[:30], wire.ErrShort},
		{"packet cut", grhPacket(ack, wire.GRHNxtHdrIBA)[:60], wire.Truncated.Err()},
		{"BTH cut", grhPacket(ack[:11], wire.GRHNxtHdrIBA), wire.ErrShort},
		{"no room for AETH", grhPacket(ack[:16], wire.GRHNxtHdrIBA), wire.BadLength.Err()},
		{"pad of nothing", grhPacket(padded, wire.GRHNxtHdrIBA), wire.BadPad.Err()},
		{
			"opcode", grhPacket(bytes.Repeat([]byte{0xff}, 20), wire.GRHNxtHdrIBA),
			wire.UnknownOpcode.Err(),
		},
	}
	for _, tt := range tests {
		g := gopacket.NewPacket(tt.frame, layers.LayerTypeEthernet, gopacket.Default)
		var got error
		if e := g.ErrorLayer(); e != nil {
			got = e.Error()
		}
		if !errors.Is(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if (g.Layer(LayerTypeBTH) != nil) != (tt.name == "good") {
			t.Errorf("%s: layers %v", tt.name, g)
		}
	}
}
