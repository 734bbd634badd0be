package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// build makes a sealed packet of any opcode with n bytes of payload.
func build(tb rapid.TB, f Framing, op Opcode, n int) []byte {
	tb.Helper()
	s := op.Spec()
	transport := make([]byte, s.TransportLen(n)-ICRCLen)
	BTH{Opcode: op, M: true, PadCnt: PadCnt(n), PKey: DefaultPKey, DestQP: 0x11, PSN: 0x64}.
		Put(transport)
	for i := range int(s.HeaderLen) + n {
		transport[BTHLen+i] = byte(i + 1)
	}
	if f == FramingNative || f == FramingNativeGRH {
		return buildNative(f, transport)
	}
	var t Template
	if err := t.Init(testPath(f)); err != nil {
		tb.Fatal(err)
	}
	frame := make([]byte, t.FrameLen(len(transport)))
	copy(frame[t.Len():], transport)
	return frame[:t.Seal(frame, len(transport), 7)]
}

// buildNative puts native headers, ICRC and VCRC around the transport bytes.
func buildNative(f Framing, transport []byte) []byte {
	b := make([]byte, f.netLen()+len(transport)+ICRCLen+VCRCLen)
	lrh := LRH{
		VL: 3, SL: 2, LNH: LNHLocal, DLID: 2, SLID: 1,
		PktLen: uint16(len(b)-VCRCLen) / 4,
	}
	if f == FramingNativeGRH {
		lrh.LNH = LNHGlobal
		GRH{
			IPVer: 6, TClass: 9, FlowLabel: 5, PayLen: uint16(len(transport) + ICRCLen),
			NxtHdr: GRHNxtHdrIBA, HopLmt: 64, SGID: GID{0: 0xfd, 15: 1},
			DGID: GID{0: 0xfd, 15: 2},
		}.Put(b[LRHLen:])
	}
	lrh.Put(b)
	copy(b[f.netLen():], transport)
	end := f.netLen() + len(transport)
	binary.LittleEndian.PutUint32(b[end:], ICRC(f, b[:end], nil))
	PutVCRC(b)
	return b
}

// decodeAs decodes a frame that starts with an Ethernet header or an LRH.
func decodeAs(p *Packet, f Framing, head, tail []byte) Reason {
	if f == FramingNative || f == FramingNativeGRH {
		return p.DecodeNative(head, tail)
	}
	return p.Decode(head, tail)
}

var framings = []Framing{FramingV2IPv4, FramingV2IPv6, FramingV1, FramingNative, FramingNativeGRH}

// ethFramings are those that Template makes.
var ethFramings = framings[:3]

// legalPayloads are payload sizes that an opcode allows under a PMTU of 256.
func legalPayloads(op Opcode) []int {
	var ns []int
	for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 32, 63, 255, 256} {
		if op.Spec().Payload.Allows(n, 256) {
			ns = append(ns, n)
		}
	}
	return ns
}

// TestEveryOpcode decodes a packet of each opcode in each framing, and wants
// every prefix of it to be refused.
func TestEveryOpcode(t *testing.T) {
	for _, f := range framings {
		for op, spec := range Opcodes() {
			for _, n := range legalPayloads(op) {
				frame := build(t, f, op, n)
				var p Packet
				if r := decodeAs(&p, f, frame, nil); r != OK {
					t.Fatalf("%s %s payload %d: %s, want ok", f, op, n, r)
				}
				if !p.VerifyICRC() || p.Spec != spec || p.Framing != f || p.PayloadLen() != n {
					t.Fatalf("%s %s payload %d: ICRC %t, %s, framing %s, payload %d", f, op, n,
						p.VerifyICRC(), p.BTH, p.Framing, p.PayloadLen())
				}
				for i := range n {
					if p.Payload[i] != byte(int(spec.HeaderLen)+i+1) {
						t.Fatalf("%s %s payload %d: byte %d is %d", f, op, n, i, p.Payload[i])
					}
				}
				for i := range p.end {
					if r := decodeAs(&p, f, frame[:i:i], nil); r != Truncated || p.Spec != nil {
						t.Fatalf("%s %s payload %d cut to %d of %d bytes: %s, want truncated",
							f, op, n, i, len(frame), r)
					}
				}
			}
		}
	}
}

// TestEverySplit: a frame cut in two anywhere behind its headers decodes like
// the whole, and is refused when the cut goes through the headers.
func TestEverySplit(t *testing.T) {
	for _, f := range framings {
		for op, spec := range Opcodes() {
			n := legalPayloads(op)[len(legalPayloads(op))-1]
			frame := build(t, f, op, n)
			var whole Packet
			decodeAs(&whole, f, frame, nil)
			start := whole.bth + BTHLen + int(spec.HeaderLen)
			for cut := range len(frame) {
				var p Packet
				r := decodeAs(&p, f, frame[:cut:cut], frame[cut:])
				if cut < start {
					if r != SplitHeader {
						t.Fatalf("%s %s cut at %d: %s, want split_header", f, op, cut, r)
					}
					continue
				}
				if r != OK || !p.VerifyICRC() || p.ICRC() != whole.ICRC() {
					t.Fatalf("%s %s cut at %d: %s, ICRC %t", f, op, cut, r, p.VerifyICRC())
				}
				if err := samePacket(&p, &whole); err != nil {
					t.Fatalf("%s %s cut at %d: %v", f, op, cut, err)
				}
			}
		}
	}
}

// samePacket says how two packets differ in what they show.
func samePacket(a, b *Packet) error {
	buf := make([]byte, 2*(a.PayloadLen()+b.PayloadLen()+1))
	na := a.CopyPayload(buf)
	nb := b.CopyPayload(buf[na:])
	switch {
	case !bytes.Equal(buf[:na], buf[na:na+nb]) || na != a.PayloadLen():
		return fmt.Errorf("payload %x and %x", buf[:na], buf[na:na+nb])
	case a.BTH != b.BTH || a.Spec != b.Spec:
		return fmt.Errorf("%s and %s", a.BTH, b.BTH)
	case a.Src != b.Src || a.Dst != b.Dst || a.Framing != b.Framing:
		return fmt.Errorf("%s %s>%s and %s %s>%s", a.Framing, a.Src, a.Dst, b.Framing, b.Src,
			b.Dst)
	case a.RETH() != b.RETH() || a.AETH() != b.AETH() || a.AtomicETH() != b.AtomicETH() ||
		a.AtomicAckETH() != b.AtomicAckETH() || a.ImmDt() != b.ImmDt() ||
		a.IETH() != b.IETH() || a.DETH() != b.DETH() || a.RDETH() != b.RDETH() ||
		a.XRCETH() != b.XRCETH() || a.FETH() != b.FETH():
		return errors.New("different extended headers")
	case a.TransportLen() != b.TransportLen() || a.NetworkLen() != b.NetworkLen():
		return errors.New("different lengths")
	}
	return nil
}

// fixIPv4 makes the header checksum of an untagged frame right again.
func fixIPv4(frame []byte) {
	h := frame[ethLen : ethLen+ipv4Len]
	h[10], h[11] = 0, 0
	binary.BigEndian.PutUint16(h[10:], ^ipv4Sum((*[ipv4Len]byte)(h)))
}

// TestLengthGrid (every opcode, payload, pad count, UDP and IP length around the
// right one): a packet is accepted exactly when all of its lengths agree, and
// nothing underflows.
func TestLengthGrid(t *testing.T) {
	accepted := 0
	for i := range 256 {
		op := Opcode(i)
		spec := op.Spec()
		for body := range int(spec.HeaderLen) + 8 {
			for pad := range 4 {
				for udp := -8; udp <= 8; udp++ {
					for ip := -8; ip <= 8; ip += 4 {
						if lengthGridCase(t, op, body, pad, udp, ip) {
							accepted++
						}
					}
				}
			}
		}
	}
	if accepted == 0 {
		t.Error("no packet of the grid was accepted")
	}
}

// lengthGridCase decodes a packet with body bytes between BTH and ICRC, lengths off by
// the given amounts, and 16 bytes behind it. It reports whether the packet was accepted.
func lengthGridCase(t *testing.T, op Opcode, body, pad, udpOff, ipOff int) bool {
	t.Helper()
	var buf [ethLen + ipv4Len + udpLen + BTHLen + 64 + ICRCLen + 16]byte
	transport := BTHLen + body + ICRCLen
	frame := buf[:ethLen+ipv4Len+udpLen+transport+16]
	h := frame[ethLen:]
	binary.BigEndian.PutUint16(frame[12:], etherTypeIPv4)
	h[0], h[8], h[9] = 0x45, 64, protoUDP
	udp, ip := udpLen+transport+udpOff, ipv4Len+udpLen+transport+ipOff
	binary.BigEndian.PutUint16(h[2:], uint16(ip))
	binary.BigEndian.PutUint16(h[ipv4Len+2:], UDPPort)
	binary.BigEndian.PutUint16(h[ipv4Len+4:], uint16(udp))
	fixIPv4(frame)
	BTH{Opcode: op, PadCnt: uint8(pad)}.Put(h[ipv4Len+udpLen:])

	spec := op.Spec()
	length := transport + udpOff // what both lengths say, when they agree
	payload := length - BTHLen - int(spec.HeaderLen) - pad - ICRCLen
	wantOK := udpOff == ipOff && spec.Known && length%4 == 0 && payload >= 0 &&
		(spec.Payload.Allows(payload, payload) || spec.Payload == PayloadPartial)
	var p Packet
	r := p.Decode(frame, nil)
	if (r == OK) != wantOK {
		t.Fatalf("%s body %d pad %d UDP length %+d IP length %+d: %s, want ok %t", op, body, pad,
			udpOff, ipOff, r, wantOK)
	}
	if r == OK && p.PayloadLen() != payload {
		t.Fatalf("%s body %d pad %d: payload %d, want %d", op, body, pad, p.PayloadLen(), payload)
	}
	return r == OK
}

// TestUnknownOpcodes: each of the 256 opcodes, alone and with room for anything,
// to ordinary, special and multicast QPs.
func TestUnknownOpcodes(t *testing.T) {
	for i := range 256 {
		for _, qpn := range []uint32{0, 1, 0x11, MulticastQP} {
			for _, n := range []int{0, 4, 16, 64} {
				frame := build(t, FramingV2IPv4, RCSendOnly, n)
				frame[ethLen+ipv4Len+udpLen] = byte(i)
				SetBTHDestQP(frame[ethLen+ipv4Len+udpLen:], qpn)
				var p Packet
				r := p.Decode(frame, nil)
				if known := Opcode(i).Spec().Known; known == (r == UnknownOpcode) {
					t.Errorf("opcode 0x%02x: %s, known %t", i, r, known)
				}
				if p.VerifyICRC() && (byte(i) != byte(RCSendOnly) || qpn != 0x11) {
					t.Errorf("opcode 0x%02x: ICRC right in a changed packet", i)
				}
			}
		}
	}
}

// TestFixedPayloads: opcodes whose payload has a fixed size refuse one word and
// one byte more and less.
func TestFixedPayloads(t *testing.T) {
	for op, spec := range Opcodes() {
		size := map[PayloadRule]int{PayloadNone: 0, Payload8: 8, Payload16: 16}
		right, fixed := size[spec.Payload]
		if !fixed {
			continue
		}
		for _, d := range []int{-4, -1, 0, 1, 4} {
			n := right + d
			if n < 0 {
				continue
			}
			want := BadPayloadSize
			if d == 0 {
				want = OK
			}
			var p Packet
			if r := p.Decode(build(t, FramingV2IPv4, op, n), nil); r != want {
				t.Errorf("%s payload %d: %s, want %s", op, n, r, want)
			}
		}
	}
}

func TestDecodeReasons(t *testing.T) {
	patch := func(f Framing, at int, b ...byte) func() []byte {
		return func() []byte {
			frame := build(t, f, RCSendOnly, 5)
			copy(frame[at:], b)
			if f == FramingV2IPv4 && at != 24 {
				fixIPv4(frame)
			}
			return frame
		}
	}
	const v4, v6, v1 = FramingV2IPv4, FramingV2IPv6, FramingV1
	tests := []struct {
		name  string
		frame func() []byte
		want  Reason
	}{
		{"untouched", patch(v4, 0), OK},
		{"ARP", patch(v4, 12, 0x08, 0x06), NotRoCE},
		{"double tag", patch(v4, 12, 0x81, 0, 0, 1, 0x81, 0, 0, 1), NotRoCE},
		{"tag and nothing", func() []byte { return patch(v4, 12, 0x81, 0)()[:16] }, Truncated},
		{"TCP", patch(v4, 23, 6), NotRoCE},
		{"IPv6 TCP", patch(v6, 20, 6), NotRoCE},
		{"other port", patch(v4, 36, 0x12, 0xb8), NotRoCE},
		{"IPv4 version 5", patch(v4, 14, 0x55), BadIPHeader},
		{"IPv4 header length 4", patch(v4, 14, 0x44), BadIPHeader},
		{"IPv4 options", patch(v4, 14, 0x46), IPOptions},
		{"IPv6 version 4", patch(v6, 14, 0x40), BadIPHeader},
		{"hop-by-hop options", patch(v6, 20, 0), IPOptions},
		{"routing header", patch(v6, 20, 43), IPOptions},
		{"destination options", patch(v6, 20, 60), IPOptions},
		{"IPv6 fragment", patch(v6, 20, 44), Fragment},
		{"more fragments", patch(v4, 20, 0x20, 0), Fragment},
		{"last fragment", patch(v4, 20, 0, 1), Fragment},
		{"large offset", patch(v4, 20, 0x10, 0), Fragment},
		{"may be fragmented", patch(v4, 20, 0, 0), OK},
		{"reserved flag", patch(v4, 20, 0x80, 0), OK},
		{"header checksum", patch(v4, 24, 0xff, 0xfe), BadIPChecksum},
		{"IP length below headers", patch(v4, 16, 0, 27), BadIPLength},
		{"IP length zero", patch(v4, 16, 0, 0), BadIPLength},
		{"IPv6 length zero", patch(v6, 18, 0, 0), BadIPLength},
		{"UDP length zero", patch(v4, 38, 0, 0), BadUDPLength},
		{"UDP length 65535", patch(v6, 58, 0xff, 0xff), BadUDPLength},
		{"GRH version 4", patch(v1, 14, 0x40), BadGRH},
		{"GRH next header UDP", patch(v1, 20, 17), BadGRH},
		{"GRH length 0", patch(v1, 18, 0, 0), BadLength},
		{"GRH length 15", patch(v1, 18, 0, 15), BadLength},
		{"GRH length not a multiple of 4", patch(v1, 18, 0, 23), BadLength},
		{"GRH length too long", patch(v1, 18, 0, 28), Truncated},
		{"GRH length 65532", patch(v1, 18, 0xff, 0xfc), Truncated},
		{"GRH length before transport version", func() []byte {
			frame := patch(v1, 18, 0, 12)()
			frame[ethLen+GRHLen+1] = 0x0f
			return frame
		}, BadLength},
		{"transport version", patch(v4, 43, 0x71), BadTVer},
		{"opcode", patch(v4, 42, 0xff), UnknownOpcode},
		{"too short for RETH", patch(v4, 42, byte(RCWriteOnly)), BadLength},
		{"pad of an ACK", func() []byte {
			frame := build(t, v4, RCAck, 0)
			frame[43] |= 0x10
			return frame
		}, BadPad},
		{"payload of an ACK", patch(v4, 42, byte(RCAck)), BadPayloadSize},
		{"empty", func() []byte { return nil }, Truncated},
	}
	for _, tt := range tests {
		var p Packet
		r := p.Decode(tt.frame(), nil)
		if r != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, r, tt.want)
		}
		if (r == OK) != (p.Spec != nil) || (r == OK) != (r.Err() == nil) {
			t.Errorf("%s: %s, spec %v, error %v", tt.name, r, p.Spec, r.Err())
		}
	}
}

func TestDecodeNativeReasons(t *testing.T) {
	patch := func(f Framing, at int, b byte) []byte {
		frame := build(t, f, RCSendOnly, 5)
		frame[at] = b
		return frame
	}
	tests := []struct {
		name  string
		frame []byte
		want  Reason
	}{
		{"local", patch(FramingNative, 0, 0x30), OK},
		{"global", patch(FramingNativeGRH, 0, 0x30), OK},
		{"link version", patch(FramingNative, 0, 0x31), BadLRH},
		{"raw", patch(FramingNative, 1, 0), NotRoCE},
		{"raw IPv6", patch(FramingNative, 1, 1), NotRoCE},
		{"length 0", patch(FramingNative, 5, 0), BadLRH},
		{"length of LRH only", patch(FramingNative, 5, 2), BadLength},
		{"length too long", patch(FramingNative, 4, 7), Truncated},
		{"LRH shorter than GRH says", patch(FramingNativeGRH, 5, 3), BadLRH},
		{"LRH longer than GRH says", patch(FramingNativeGRH, 5, 99), BadLRH},
		{"GRH next header", patch(FramingNativeGRH, 14, 0x11), BadGRH},
	}
	for _, tt := range tests {
		var p Packet
		if r := p.DecodeNative(tt.frame, nil); r != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, r, tt.want)
		}
	}
}

// TestTrailingBytes: bytes behind the packet change nothing, in one piece or two.
func TestTrailingBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := rapid.SampledFrom(ethFramings).Draw(rt, "framing")
		n := rapid.IntRange(0, 300).Draw(rt, "payload")
		extra := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(rt, "extra")
		frame := build(t, f, UDSendOnly, n)
		var whole, p Packet
		whole.Decode(frame, nil)
		long := append(bytes.Clone(frame), extra...)
		if r := p.Decode(long, nil); r != OK || !p.VerifyICRC() {
			rt.Fatalf("%s, ICRC %t", r, p.VerifyICRC())
		}
		if err := samePacket(&p, &whole); err != nil {
			rt.Fatal(err)
		}
		if r := p.Decode(frame, extra); r != OK || !p.VerifyICRC() {
			rt.Fatalf("in two pieces: %s, ICRC %t", r, p.VerifyICRC())
		}
	})
}

// TestUnusedPacket: no method of a Packet that was never or wrongly decoded
// panics, and none calls it right.
func TestUnusedPacket(t *testing.T) {
	for _, frame := range [][]byte{nil, make([]byte, 100), build(t, FramingV2IPv4, 0x15, 0)} {
		var p Packet
		if frame != nil && p.Decode(frame, nil) == OK {
			t.Fatal("decoded what it should not")
		}
		if p.VerifyICRC() || p.VerifyVCRC() || p.ICRC() != 0 || p.PayloadLen() != 0 ||
			p.TransportLen() != 0 || p.CopyPayload(make([]byte, 9)) != 0 {
			t.Errorf("an unused packet has contents: %+v", p)
		}
		if p.NetworkLen() != 0 || p.RETH() != (RETH{}) || p.AETH() != (AETH{}) ||
			p.AtomicETH() != (AtomicETH{}) || p.AtomicAckETH() != (AtomicAckETH{}) ||
			p.ImmDt() != (ImmDt{}) || p.IETH() != (IETH{}) || p.DETH() != (DETH{}) ||
			p.RDETH() != (RDETH{}) || p.XRCETH() != (XRCETH{}) || p.FETH() != (FETH{}) {
			t.Errorf("an unused packet has headers: %+v", p)
		}
	}
}

// TestReused: what an earlier frame left in a Packet does not show in the next.
func TestReused(t *testing.T) {
	path := testPath(FramingV2IPv6)
	path.Tags = Tags{{TPIDService, 0xe123}, {TPIDCustomer, 7}}
	var tmpl Template
	if err := tmpl.Init(path); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, tmpl.FrameLen(BTHLen+RETHLen+ImmDtLen+100))
	BTH{Opcode: RCWriteOnlyImm, PSN: 9}.Put(first[tmpl.Len():])
	tmpl.Seal(first, BTHLen+RETHLen+ImmDtLen+100, 0)
	for _, f := range framings {
		second := build(t, f, RCSendOnly, 0)
		var p, fresh Packet
		p.DecodeNative(build(t, FramingNativeGRH, RCAck, 0), nil)
		if r := p.Decode(first[:120:120], first[120:]); r != OK || p.Tags != path.Tags {
			t.Fatalf("%s, tags %x", r, p.Tags)
		}
		decodeAs(&p, f, second, nil)
		decodeAs(&fresh, f, second, nil)
		if got, want := fmt.Sprintf("%+v", p), fmt.Sprintf("%+v", fresh); got != want {
			t.Errorf("%s: reused\n%s, fresh\n%s", f, got, want)
		}
	}
}

func TestReasonNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range Reason(NumReasons) {
		name := r.String()
		if name == "" || name != strings.ToLower(name) || strings.ContainsAny(name, " -.") ||
			seen[name] {
			t.Errorf("reason %d has the name %q", r, name)
		}
		seen[name] = true
		var e DecodeError
		if err := r.Err(); r != OK && (!errors.As(err, &e) || Reason(e) != r ||
			!strings.Contains(err.Error(), name)) {
			t.Errorf("%s as an error is %v", r, err)
		}
	}
	if s := Reason(200).String(); s != "reason_200" {
		t.Errorf("unknown reason is %q", s)
	}
}
