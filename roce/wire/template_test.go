package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// drawPath makes any legal path.
// drawTags draws up to MaxTags VLAN tags.
func drawTags(t *rapid.T) (tags Tags) {
	for i := range rapid.IntRange(0, MaxTags).Draw(t, "tags") {
		tpid := rapid.SampledFrom([]uint16{TPIDCustomer, TPIDService}).Draw(t, "TPID")
		tags[i] = Tag{tpid, rapid.Uint16().Draw(t, "TCI")}
	}
	return tags
}

func drawPath(t *rapid.T) Path {
	bytes6 := rapid.SliceOfN(rapid.Byte(), 6, 6)
	bytes16 := rapid.SliceOfN(rapid.Byte(), 16, 16)
	p := Path{
		Framing:  rapid.SampledFrom(ethFramings).Draw(t, "framing"),
		SrcMAC:   [6]byte(bytes6.Draw(t, "source MAC")),
		DstMAC:   [6]byte(bytes6.Draw(t, "destination MAC")),
		Tags:     drawTags(t),
		Src:      GID(bytes16.Draw(t, "source")),
		Dst:      GID(bytes16.Draw(t, "destination")),
		TClass:   rapid.Byte().Draw(t, "class"),
		HopLimit: rapid.Byte().Draw(t, "hop limit"),
	}
	if p.Framing != FramingV1 {
		p.SrcPort = rapid.Uint16().Draw(t, "port")
	}
	if p.Framing == FramingV2IPv4 {
		p.Src, p.Dst = GIDFromIPv4(p.Src.IPv4()), GIDFromIPv4(p.Dst.IPv4())
	} else {
		p.Src[0], p.Dst[0] = 0xfd, 0xfe // certainly not IPv4-mapped
		p.FlowLabel = rapid.Uint32Max(flowLabelMask).Draw(t, "flow label")
	}
	return p
}

// pathOf is the path that a decoded packet travelled.
func pathOf(p *Packet) Path {
	return Path{
		Framing: p.Framing, SrcMAC: p.SrcMAC, DstMAC: p.DstMAC, Tags: p.Tags,
		Src: p.Src, Dst: p.Dst, TClass: p.TClass, HopLimit: p.HopLimit,
		FlowLabel: p.FlowLabel, SrcPort: p.SrcPort,
	}
}

// TestTemplateRoundTrip: any path, opcode, payload and identification survives
// Seal and Decode, whatever the frame held before.
func TestTemplateRoundTrip(t *testing.T) {
	var ops []Opcode
	for op := range Opcodes() {
		ops = append(ops, op)
	}
	rapid.Check(t, func(t *rapid.T) {
		path := drawPath(t)
		var tmpl Template
		if err := tmpl.Init(path); err != nil {
			t.Fatal(err)
		}
		op := rapid.SampledFrom(ops).Draw(t, "opcode")
		n := rapid.SampledFrom(legalPayloads(op)).Draw(t, "payload")
		ipID := rapid.Uint16().Draw(t, "identification")
		bth := BTH{
			Opcode: op, SE: rapid.Bool().Draw(t, "se"), M: rapid.Bool().Draw(t, "m"),
			PadCnt: PadCnt(n), PKey: rapid.Uint16().Draw(t, "pkey"),
			FECN: rapid.Bool().Draw(t, "fecn"), BECN: rapid.Bool().Draw(t, "becn"),
			DestQP: rapid.Uint32Max(max24).Draw(t, "qpn"),
			AckReq: rapid.Bool().Draw(t, "ackreq"),
			PSN:    PSN(rapid.Uint32Max(max24).Draw(t, "psn")),
		}
		body := op.Spec().TransportLen(n) - ICRCLen
		frame := bytes.Repeat([]byte{rapid.Byte().Draw(t, "dirt")}, tmpl.FrameLen(body)+3)
		transport := frame[tmpl.Len():][:body]
		bth.Put(transport)
		copy(transport[BTHLen:], rapid.SliceOfN(rapid.Byte(), body-BTHLen, body-BTHLen).
			Draw(t, "body"))
		want := bytes.Clone(transport)
		behind := bytes.Clone(frame[tmpl.FrameLen(body):])
		end := tmpl.Seal(frame, body, ipID)

		var p Packet
		if r := p.Decode(frame[:end], nil); r != OK || !p.VerifyICRC() {
			t.Fatalf("%s, ICRC %t", r, p.VerifyICRC())
		}
		if got := pathOf(&p); got != path || p.BTH != bth || p.PayloadLen() != n {
			t.Fatalf("got\n%+v %s %d, want\n%+v %s %d", got, p.BTH, p.PayloadLen(), path, bth, n)
		}
		if path.Framing == FramingV2IPv4 && p.IPID != ipID {
			t.Fatalf("identification %d, want %d", p.IPID, ipID)
		}
		if end != tmpl.FrameLen(body) || end != p.end || !bytes.Equal(transport, want) ||
			!bytes.Equal(frame[end:], behind) {
			t.Fatal("Seal wrote where it should not")
		}
	})
}

// TestSealICRC: the ICRC that Seal puts together from what Init knew is that of
// the bytes, for any path and any length.
func TestSealICRC(t *testing.T) {
	lengths := rapid.OneOf(rapid.IntRange(BTHLen/4, 100),
		rapid.SampledFrom([]int{268, 269, 270, 271, 1024, 1036, 1039, 16000}))
	rapid.Check(t, func(t *rapid.T) {
		path := drawPath(t)
		var tmpl Template
		if err := tmpl.Init(path); err != nil {
			t.Fatal(err)
		}
		n := 4 * lengths.Draw(t, "words")
		seed := rapid.Uint64().Draw(t, "seed")
		frame := make([]byte, tmpl.FrameLen(n))
		rand.NewChaCha8([32]byte{0: byte(seed), 1: byte(seed >> 8)}).Read(frame)
		end := tmpl.Seal(frame, n, rapid.Uint16().Draw(t, "identification"))
		h := frame[tmpl.net : end-ICRCLen]
		got := binary.LittleEndian.Uint32(frame[end-ICRCLen:])
		if want := slowICRC(path.Framing, h); got != want {
			t.Fatalf("%s with %d bytes: 0x%08x, want 0x%08x", path.Framing, n, got, want)
		}
		if path.Framing == FramingV2IPv4 {
			ip := (*[ipv4Len]byte)(h)
			if ipv4Sum(ip) != 0xffff || !ipv4SumOK(ip) {
				t.Fatalf("checksum of %x", ip)
			}
		}
	})
}

// TestIPv4SumOK compares with the plain sum.
func TestIPv4SumOK(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := [ipv4Len]byte(rapid.SliceOfN(rapid.Byte(), ipv4Len, ipv4Len).Draw(t, "header"))
		h[0] = 0x45
		if got, want := ipv4SumOK(&h), ipv4Sum(&h) == 0xffff; got != want {
			t.Fatalf("%x: %t, want %t", h, got, want)
		}
		h[10], h[11] = 0, 0
		binary.BigEndian.PutUint16(h[10:], ^ipv4Sum(&h))
		if !ipv4SumOK(&h) {
			t.Fatalf("%x: false, want true", h)
		}
	})
}

// TestTemplateFields: what is not in Path.
func TestTemplateFields(t *testing.T) {
	v4 := build(t, FramingV2IPv4, RCSendOnly, 3)
	if !bytes.Equal(v4[20:22], []byte{0x40, 0}) {
		t.Errorf("IPv4 flags %x, want do not fragment", v4[20:22])
	}
	if !bytes.Equal(v4[40:42], []byte{0, 0}) {
		t.Errorf("UDP checksum %x over IPv4, want 0", v4[40:42])
	}
	v6 := build(t, FramingV2IPv6, RCSendOnly, 3)
	if !bytes.Equal(v6[60:62], []byte{0, 0}) {
		t.Errorf("UDP checksum %x over IPv6, want 0", v6[60:62])
	}
}

// TestIPv4Checksum: all identifications give a right checksum, also where the
// sum folds.
func TestIPv4Checksum(t *testing.T) {
	frame, tmpl, n := benchFrame(t, 4)
	for id := range 1 << 16 {
		tmpl.Seal(frame, n, uint16(id))
		if sum := ipv4Sum((*[ipv4Len]byte)(frame[ethLen:])); sum != 0xffff {
			t.Fatalf("identification %d: sum 0x%04x", id, sum)
		}
	}
}

func TestTemplateErrors(t *testing.T) {
	tests := map[string]func(*Path){
		"no framing":         func(p *Path) { p.Framing = FramingNone },
		"native":             func(p *Path) { p.Framing = FramingNative },
		"IPv6 source":        func(p *Path) { p.Src = GID{0: 0xfd} },
		"IPv6 destination":   func(p *Path) { p.Dst = GID{0: 0xfd} },
		"IPv4 in IPv6":       func(p *Path) { p.Framing = FramingV2IPv6 },
		"flow label 21 bits": func(p *Path) { p.FlowLabel = 1 << 20 },
	}
	for name, spoil := range tests {
		p := testPath(FramingV2IPv4)
		spoil(&p)
		tmpl := Template{n: 1}
		if err := tmpl.Init(p); !errors.Is(err, ErrPath) || tmpl.n != 1 {
			t.Errorf("%s: %v, want ErrPath and the template untouched", name, err)
		}
	}
}

func TestTemplateSize(t *testing.T) {
	if n := reflect.TypeFor[Template]().Size(); n > 80 {
		t.Errorf("a Template has %d bytes, want at most 80", n)
	}
}

func TestAllocs(t *testing.T) {
	frame, tmpl, n := benchFrame(t, 1024)
	var p, h Packet
	h.Decode(frame, nil)
	buf := make([]byte, len(frame))
	tests := map[string]func(){
		"Decode":     func() { p.Decode(frame, nil) },
		"refuse":     func() { p.Decode(frame[:500], nil) },
		"two pieces": func() { p.Decode(frame[:500], frame[500:]) },
		"VerifyICRC": func() { p.VerifyICRC() },
		"Seal":       func() { tmpl.Seal(frame, n, 1) },
		"headers":    func() { p.RETH(); p.AETH(); p.AtomicETH(); p.ImmDt() },
		"Err":        func() { _ = BadPad.Err() },
		"CopyTo":     func() { p, _ = h.CopyTo(buf) },
		"GRH":        func() { h.PutGRH(buf); _, _ = ParseReplyGRH(buf) },
	}
	for name, f := range tests {
		if got := testing.AllocsPerRun(100, f); got != 0 {
			t.Errorf("%s: %g allocations, want 0", name, got)
		}
	}
}
