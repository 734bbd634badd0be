package encap

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"xroce/roce/wire"
)

// onEthernet puts an Ethernet header with VLAN tags before a packet.
func onEthernet(etherType uint16, tags int, b []byte) []byte {
	frame := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}
	for range tags {
		frame = append(frame, 0x81, 0, 0, 5)
	}
	return append(binary.BigEndian.AppendUint16(frame, etherType), b...)
}

// overRoCE makes a RoCE v2 frame, or a v1 one, with a payload.
func overRoCE(tb testing.TB, framing wire.Framing, op wire.Opcode, payload []byte) []byte {
	tb.Helper()
	path := wire.Path{
		Framing: framing, SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2},
		Src: wire.GID(netip.MustParseAddr("fd00::1").As16()),
		Dst: wire.GID(netip.MustParseAddr("fd00::2").As16()), HopLimit: 64, SrcPort: 0xc001,
	}
	if framing == wire.FramingV2IPv4 {
		path.Src = wire.GID(netip.MustParseAddr("::ffff:10.0.0.1").As16())
		path.Dst = wire.GID(netip.MustParseAddr("::ffff:10.0.0.2").As16())
	}
	var t wire.Template
	if err := t.Init(path); err != nil {
		tb.Fatal(err)
	}
	header := wire.BTHLen + int(op.Spec().HeaderLen)
	pad := -len(payload) & 3
	n := header + len(payload) + pad
	frame := make([]byte, t.FrameLen(n))
	b := frame[t.Len():]
	wire.BTH{
		Opcode: op, PKey: wire.DefaultPKey, DestQP: 0x11, PSN: 1, PadCnt: uint8(pad),
	}.Put(b)
	if op.Spec().Has(wire.HasDETH) {
		wire.DETH{QKey: 1, SrcQP: 0x12}.Put(b[wire.BTHLen:])
	}
	copy(b[header:], payload)
	return frame[:t.Seal(frame, n, 1)]
}

// TestNesting: a datagram may be encapsulated twice, in whatever format, and not a third time.
func TestNesting(t *testing.T) {
	frames := map[string]func(kind Kind, b []byte) []byte{
		"raw": func(k Kind, b []byte) []byte {
			return onEthernet(EtherTypeNative, 0, put(t, Raw, k, b))
		},
		"raw with tags": func(k Kind, b []byte) []byte {
			return onEthernet(EtherTypeNative, 2, put(t, Raw, k, b))
		},
		"rawgrh": func(k Kind, b []byte) []byte {
			return onEthernet(EtherTypeNative, 1, put(t, RawGRH, k, b))
		},
		"eoib": func(k Kind, b []byte) []byte {
			return overRoCE(t, wire.FramingV2IPv4, wire.UDSendOnly, put(t, EoIB, k, b))
		},
		"eoib, v1": func(k Kind, b []byte) []byte {
			return overRoCE(t, wire.FramingV1, wire.UDSendOnly, put(t, EoIB, k, b))
		},
		"vnic": func(k Kind, b []byte) []byte {
			return overRoCE(t, wire.FramingV2IPv6, wire.UDSendOnlyImm, put(t, VNIC, k, b))
		},
		"vnic, RC": func(k Kind, b []byte) []byte {
			return overRoCE(t, wire.FramingV2IPv6, wire.RCSendOnly, put(t, VNIC, k, b))
		},
	}
	plain := datagram(Ethernet, 60, rand.New(rand.NewPCG(1, 1)))
	if n := Nesting(Ethernet, plain); n != 0 {
		t.Fatalf("a plain frame is nested %d times", n)
	}
	for name1, first := range frames {
		once := first(Ethernet, plain)
		if n := Nesting(Ethernet, once); n != 1 {
			t.Errorf("%s: nested %d times", name1, n)
		}
		for name2, second := range frames {
			twice := second(Ethernet, once)
			if n := Nesting(Ethernet, twice); n != 2 {
				t.Errorf("%s in %s: nested %d times", name1, name2, n)
			}
			tp := template(Raw)
			frame := make([]byte, tp.Room)
			if _, r := tp.Put(frame, Ethernet, twice); r != Nested {
				t.Errorf("%s in %s: %s", name1, name2, r)
			}
			if _, r := tp.Cut(Ethernet, twice, 0); r != Nested {
				t.Errorf("%s in %s: %s", name1, name2, r)
			}
		}
	}
	// As IP, without the Ethernet header.
	ip := frames["eoib"](Ethernet, plain)[14:]
	if n := Nesting(IPv4, ip); n != 1 {
		t.Errorf("IPv4: nested %d times", n)
	}
	over := overRoCE(t, wire.FramingV2IPv6, wire.UDSendOnly, put(t, IPoIB, IPv4, ip))
	if n := Nesting(IPv6, over[14:]); n != 2 {
		t.Errorf("IPv6: nested %d times", n)
	}
}

// put is a packet of a format.
func put(tb testing.TB, f Format, k Kind, d []byte) []byte {
	tb.Helper()
	tp := template(f)
	frame := make([]byte, tp.Room)
	n, r := tp.Put(frame, k, d)
	if r == Nested { // to look at it, it is made all the same
		header := f.Spec().HeaderLen
		copy(frame[header:], d)
		n = tp.wrap(frame, k, header, len(d), Segment{})
	} else if r != OK {
		tb.Fatalf("%s of %d bytes in %s: %s", k, len(d), f, r)
	}
	return frame[:n]
}

// TestNotNested: what only looks a little like it is not.
func TestNotNested(t *testing.T) {
	plain := datagram(Ethernet, 60, rand.New(rand.NewPCG(1, 1)))
	roce := overRoCE(t, wire.FramingV2IPv4, wire.UDSendOnly, put(t, EoIB, Ethernet, plain))
	fragment := bytes.Clone(roce)
	fragment[14+7] = 1
	write := overRoCE(t, wire.FramingV2IPv4, wire.RCWriteOnly, put(t, EoIB, Ethernet, plain))
	text := overRoCE(t, wire.FramingV2IPv4, wire.UDSendOnly, []byte("just some text"))
	for name, frame := range map[string][]byte{
		"fragment": fragment, "WRITE": write, "text": text,
		"five tags": onEthernet(EtherTypeNative, 5, put(t, Raw, Ethernet, plain)),
		"IBA":       onEthernet(EtherTypeNative, 0, nativeOf([]byte{0, 2, 0, 2, 0, 2, 0, 1})),
		"native":    onEthernet(EtherTypeNative, 0, []byte("neither")),
	} {
		if n := Nesting(Ethernet, frame); n != 0 {
			t.Errorf("%s: nested %d times", name, n)
		}
	}
	for n := range roce {
		Nesting(Ethernet, roce[:n])
		Nesting(IPv4, roce[14:][:max(n-14, 0)])
	}
	if Nesting(0, roce) != 0 || Nesting(99, roce) != 0 {
		t.Error("of no kind")
	}
}

// TestOwn: what the tunnel sent is not taken into the tunnel, in any framing.
func TestOwn(t *testing.T) {
	plain := datagram(Ethernet, 60, rand.New(rand.NewPCG(1, 1)))
	payload := put(t, EoIB, Ethernet, plain)
	native := onEthernet(EtherTypeNative, 1, put(t, Raw, Ethernet, plain))
	v4 := overRoCE(t, wire.FramingV2IPv4, wire.UDSendOnly, payload)
	for _, tt := range []struct {
		name  string
		kind  Kind
		frame []byte
	}{
		{"native", Ethernet, native},
		{"RoCE v1", Ethernet, overRoCE(t, wire.FramingV1, wire.UDSendOnly, payload)},
		{"IPv4", Ethernet, v4},
		{"IPv6", Ethernet, overRoCE(t, wire.FramingV2IPv6, wire.UDSendOnly, payload)},
		{"any RoCE", Ethernet, overRoCE(t, wire.FramingV2IPv6, wire.RCWriteOnly, payload)},
		{"IPv4 without Ethernet", IPv4, v4[14:]},
	} {
		tp := template(Raw)
		frame := make([]byte, tp.Room)
		tp.OwnMAC = [6]byte{2, 0, 0, 0, 0, 9}
		tp.Own = []netip.Addr{netip.MustParseAddr("10.0.0.9")}
		if _, r := tp.Put(frame, tt.kind, tt.frame); r != OK {
			t.Errorf("%s, of somebody else: %s", tt.name, r)
		}
		tp.OwnMAC = [6]byte{2, 0, 0, 0, 0, 1}
		tp.Own = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
		if _, r := tp.Put(frame, tt.kind, tt.frame); r != Own {
			t.Errorf("%s: %s", tt.name, r)
		}
	}
}
