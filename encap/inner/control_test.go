package inner

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/encap"
)

// TestClampMSS lowers what a SYN offers where it is too much, wherever the option lies, and
// leaves every other packet alone.
func TestClampMSS(t *testing.T) {
	mss := layers.TCPOption{OptionType: 2, OptionLength: 4, OptionData: []byte{0x05, 0xb4}}
	nop := layers.TCPOption{OptionType: 1}
	for _, v6 := range []bool{false, true} {
		for nops := range 4 {
			syn := func(h *layers.TCP) {
				h.ACK, h.SYN = false, true
				for range nops {
					h.Options = append(h.Options, nop)
				}
				h.Options = append(h.Options, mss)
			}
			b := tcpPacket(t, v6, 1, 0, syn)
			h := Parse(encap.Ethernet, b)
			before := bytes.Clone(b)
			if h.ClampMSS(b, 9000, false) || !bytes.Equal(b, before) {
				t.Error("a small one was changed")
			}
			if !h.ClampMSS(b, 1000, false) || !checksums(b, &h) {
				t.Errorf("IPv6 %v, %d NOPs: not changed, or the checksum is wrong", v6, nops)
			}
			got := binary.BigEndian.Uint16(b[h.L4+tcpLen+nops+2:])
			if want := 1000 - (h.L4 - h.L3) - tcpLen; int(got) != want {
				t.Errorf("IPv6 %v, %d NOPs: %d, want %d", v6, nops, got, want)
			}
		}
	}
	b := tcpPacket(t, false, 0, 0, func(h *layers.TCP) {
		h.SYN, h.Options = true, []layers.TCPOption{mss}
	})
	v := uncut(b, encap.Ethernet, 0)
	h := Parse(encap.Ethernet, b)
	if !h.ClampMSS(b, 1000, true) || !v.Complete(b) || !checksums(b, &h) {
		t.Error("with a partial checksum it is wrong, or nothing changed")
	}
	b = tcpPacket(t, false, 0, 0, func(h *layers.TCP) { h.Options = []layers.TCPOption{mss} })
	if h := Parse(encap.Ethernet, b); h.ClampMSS(b, 100, false) {
		t.Error("no SYN, and changed")
	}
}

// TestECN has every pair of marks, with the checksum of the packet kept right.
func TestECN(t *testing.T) {
	want := map[[2]uint8]int{
		{NotECT, NotECT}: NotECT, {NotECT, ECT1}: NotECT, {NotECT, ECT0}: NotECT, {NotECT, CE}: -1,
		{ECT0, NotECT}: ECT0, {ECT0, ECT1}: ECT1, {ECT0, ECT0}: ECT0, {ECT0, CE}: CE,
		{ECT1, NotECT}: ECT1, {ECT1, ECT1}: ECT1, {ECT1, ECT0}: ECT1, {ECT1, CE}: CE,
		{CE, NotECT}: CE, {CE, ECT1}: CE, {CE, ECT0}: CE, {CE, CE}: CE,
	}
	for _, v6 := range []bool{false, true} {
		for marks, after := range want {
			b := tcpPacket(t, v6, -1, 10, nil)
			k := kindFor(v6, -1)
			h := Parse(k, b)
			h.setTClass(b, 0xb8|marks[0])
			if h.TClass(b) != 0xb8|marks[0] {
				t.Fatalf("traffic class %02x", h.TClass(b))
			}
			ok := h.Decapsulate(b, 0x10|marks[1])
			if ok != (after >= 0) || ok && h.TClass(b) != 0xb8|uint8(after) || !checksums(b, &h) {
				t.Errorf("IPv6 %v, %d in %d: %v, %02x", v6, marks[0], marks[1], ok, h.TClass(b))
			}
		}
	}
}

// TestTooBig: the error is a good one, to whom the packet came from, and holds its beginning.
func TestTooBig(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for tags := -1; tags <= maxTags; tags++ {
			b, k := tcpPacket(t, v6, tags, 3000, nil), kindFor(v6, tags)
			h := Parse(k, b)
			if !v6 {
				binary.BigEndian.PutUint16(b[h.L3+6:], dontFragment)
			}
			out := make([]byte, TooBigLen)
			n := h.TooBig(out, b, 1300)
			e := Parse(k, out[:n])
			if n == 0 || e.End != n || e.L3 != h.L3 || e.L4 == 0 {
				t.Fatalf("IPv6 %v, %d tags: %+v of %d bytes", v6, tags, e, n)
			}
			mtu, quoted := uint32(0), out[e.L4+icmpLen:n]
			if v6 {
				mtu = binary.BigEndian.Uint32(out[e.L4+4:])
				if !checksums(out[:n], &e) || out[e.L4] != icmp6TooBig {
					t.Error("a wrong checksum or type")
				}
			} else {
				mtu = uint32(binary.BigEndian.Uint16(out[e.L4+6:]))
				if Checksum(out[e.L3:e.L4]) != 0 || Checksum(out[e.L4:n]) != 0 {
					t.Error("a wrong checksum")
				}
			}
			if mtu != 1300 || !bytes.HasPrefix(b[h.L3:], quoted) || len(quoted) < 500 {
				t.Errorf("MTU %d, %d bytes of the packet", mtu, len(quoted))
			}
			if tags >= 0 && (!bytes.Equal(out[:6], b[6:12]) || !bytes.Equal(out[6:12], b[:6])) {
				t.Error("it goes elsewhere")
			}
		}
	}
}

// TestNoTooBig: errors about errors, groups and what may be cut are not written.
func TestNoTooBig(t *testing.T) {
	icmp := packet(t, false, 0, layers.IPProtocolICMPv4, &layers.ICMPv4{TypeCode: 3 << 8},
		gopacket.Payload(make([]byte, 2000)))
	icmp[EthernetLen+6] |= dontFragment >> 8
	icmp6 := packet(t, true, 0, layers.IPProtocolICMPv6, &layers.ICMPv6{TypeCode: 1 << 8},
		gopacket.Payload(make([]byte, 2000)))
	group := tcpPacket(t, true, 0, 2000, nil)
	group[0] |= 1
	for name, b := range map[string][]byte{
		"may be cut": tcpPacket(t, false, 0, 2000, nil), "to a group": group,
		"an error": icmp, "an error of IPv6": icmp6,
	} {
		h := Parse(encap.Ethernet, b)
		if n := h.TooBig(make([]byte, TooBigLen), b, 1300); n != 0 {
			t.Errorf("%s: an error of %d bytes", name, n)
		}
	}
}
