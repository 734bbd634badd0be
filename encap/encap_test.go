package encap

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"xroce/roce/wire"
)

// TestGolden: packets that were written by hand, both ways.
func TestGolden(t *testing.T) {
	for _, v := range vectors {
		want, inner := unhex(t, v.packet), unhex(t, v.datagram)
		tp := template(v.format)
		if err := tp.Validate(); err != nil {
			t.Fatal(err)
		}
		frame := bytes.Repeat([]byte{0xee}, tp.Room)
		n, r := tp.Put(frame, v.kind, inner)
		if r != OK || !bytes.Equal(frame[:n], want) {
			t.Errorf("%s: %s\n %x\n want\n %x", v.name, r, frame[:n], want)
		}
		var p Packet
		if r := decode(&p, v.format, want); r != OK || p.Format != v.format || p.Kind != v.kind ||
			!bytes.Equal(p.Datagram, inner) || !p.Segment.Whole() {
			t.Errorf("%s: %s, %+v", v.name, r, p)
		}
		checkHeaders(t, tp, &p)
	}
}

// checkHeaders compares what a packet says with what the template says.
func checkHeaders(t *testing.T, tp *Template, p *Packet) {
	t.Helper()
	lrh := wire.LRH{
		VL: tp.VL, SL: tp.SL, LNH: p.LRH.LNH, DLID: tp.DLID, PktLen: p.LRH.PktLen, SLID: tp.SLID,
	}
	g := &p.GRH
	switch {
	case tp.Format <= RawGRH && p.LRH != lrh:
		t.Errorf("%s: %s, want %s", tp.Format, p.LRH, lrh)
	case tp.Format == RawGRH && (g.SGID != tp.SGID || g.DGID != tp.DGID ||
		g.TClass != tp.TClass || g.FlowLabel != tp.FlowLabel || g.HopLmt != tp.HopLimit):
		t.Errorf("%s: %s", tp.Format, p.GRH)
	case tp.Format == VNIC && p.Switch != tp.Switch:
		t.Errorf("%s: switch %d", tp.Format, p.Switch)
	case (tp.Format == VNIC || tp.Format == EoIB) && p.Checks != tp.Checks:
		t.Errorf("%s: checks %d", tp.Format, p.Checks)
	}
}

// TestGoldenSegment: the second segment of a frame in a raw packet.
func TestGoldenSegment(t *testing.T) {
	tp := template(Raw)
	tp.Room = 8 + 4 + 4 + 32 + 2 // pieces of 32 bytes
	frame := unhex(t, goldenFrame)
	want := unhex(t, "30500002 00080001 000788b6"+ // the EtherType of segments
		"c5 01 1234"+ // word: no more, offset 1, ID
		"0002c0019c40000b0000616263 000000")
	want = nativeOf(want)
	c, r := tp.Cut(Ethernet, frame, 0x1234)
	if r != OK || c.Packets() != 2 {
		t.Fatalf("%s, %d packets", r, c.Packets())
	}
	buf := make([]byte, tp.Room)
	c.Next(buf)
	if n := c.Next(buf); !bytes.Equal(buf[:n], want) {
		t.Errorf("%x\n want\n%x", buf[:n], want)
	}
	if c.Packets() != 0 || c.Next(buf) != 0 {
		t.Error("there is a third")
	}
}

// TestEveryLength: every format carries a datagram of every length, byte for byte, or refuses
// it by name, and the limits are those of the table.
func TestEveryLength(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r, err := NewReassembler(ReassemblerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range Formats() {
		for _, code := range spec.Codes {
			longest := max(spec.Whole, spec.Connected)
			if code.Kind == Ethernet {
				longest = max(spec.Whole, spec.Segmented)
			}
			trip := roundTrip{t: t, tp: template(spec.Format), r: r}
			trip.frame = make([]byte, trip.tp.Room)
			for n := 14; n <= maxFrame+1; n++ {
				if n < code.Kind.MinLen() {
					continue
				}
				trip.carry(code.Kind, datagram(code.Kind, n, random), longest)
			}
			// Above 9,216 bytes those around the limit do.
			for n := max(longest-8, maxFrame); n <= min(longest+1, 1<<16-1); n++ {
				trip.carry(code.Kind, datagram(code.Kind, n, random), longest)
			}
			if t.Failed() {
				return
			}
		}
	}
}

// A roundTrip carries datagrams of one format.
type roundTrip struct {
	t     *testing.T
	tp    *Template
	r     *Reassembler
	frame []byte
	id    uint16
	p     Packet
}

// carry sends a datagram and compares what comes.
func (rt *roundTrip) carry(k Kind, d []byte, longest int) {
	t, n := rt.t, len(d)
	t.Helper()
	rt.id++
	c, reason := rt.tp.Cut(k, d, rt.id)
	switch {
	case n > longest && reason == TooLong:
		return
	case reason != OK || n > longest:
		t.Fatalf("%s of %d bytes in %s: %s", k, n, rt.tp.Format, reason)
	}
	var got []byte
	for left := c.Packets(); left > 0; left-- {
		size := rt.frame[:c.Next(rt.frame)]
		if left == 1 && len(c.rest) > 0 {
			t.Fatalf("%s of %d bytes in %s: more packets than told", k, n, rt.tp.Format)
		}
		if reason := decode(&rt.p, rt.tp.Format, size); reason != OK || rt.p.Kind != k {
			t.Fatalf("%s of %d bytes in %s: %s", k, n, rt.tp.Format, reason)
		}
		if rt.p.Segment.Whole() {
			got = rt.p.Datagram
		} else if got, reason = rt.r.Add(1, 1, &rt.p); reason != OK {
			t.Fatalf("%s of %d bytes in %s: %s", k, n, rt.tp.Format, reason)
		}
	}
	if !bytes.Equal(got, d) {
		t.Fatalf("%s of %d bytes in %s: %d came back, which differ", k, n, rt.tp.Format, len(got))
	}
	if rt.tp.Format > RawGRH {
		return
	}
	// A frame may come in two pieces.
	size := rt.tp.Format.Spec().HeaderLen + 7
	if n > rt.tp.Max(k) || rt.p.DecodeNative(rt.frame[:size], rt.frame[size:]) != OK {
		return // segments, or 40 bytes of IPv6 must lie in the first
	}
	whole := make([]byte, n+1)
	if whole = whole[:rt.p.CopyTo(whole)]; !bytes.Equal(whole, d) {
		t.Fatalf("%s of %d bytes in %s, in two pieces: it differs", k, n, rt.tp.Format)
	}
}

// TestSeal makes packets around datagrams that lie where they belong.
func TestSeal(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, spec := range Formats() {
		tp := template(spec.Format)
		for _, code := range spec.Codes {
			d := datagram(code.Kind, 61, random)
			put, seal := make([]byte, tp.Room), make([]byte, tp.Room)
			n, r := tp.Put(put, code.Kind, d)
			copy(seal[spec.HeaderLen:], d)
			m, r2 := tp.Seal(seal, code.Kind, len(d))
			if r != OK || r2 != OK || !bytes.Equal(put[:n], seal[:m]) {
				t.Errorf("%s in %s: %s, %s\n%x\n%x", code.Kind, spec.Name, r, r2, put[:n], seal[:m])
			}
			for _, n := range []int{-1, tp.Max(code.Kind) + 1} {
				if _, r := tp.Seal(seal, code.Kind, n); r != TooLong {
					t.Errorf("%d bytes of %s in %s: %s", n, code.Kind, spec.Name, r)
				}
			}
		}
	}
}

// TestRefusedToSend: what cannot be carried is refused by name, and the frame is left alone.
func TestRefusedToSend(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	ipv4, ipv6 := datagram(IPv4, 60, random), datagram(IPv6, 60, random)
	longer := append(bytes.Clone(ipv6), 0)
	for _, tt := range []struct {
		f    Format
		k    Kind
		d    []byte
		want Reason
	}{
		{EoIB, IPv4, ipv4, NotCarried},
		{RawIPv6, IPv4, ipv4, NotCarried},
		{IPoIB, Ethernet, datagram(Ethernet, 60, random), NotCarried},
		{IPoIBConnected, ARP, datagram(ARP, 56, random), NotCarried},
		{Raw, 0, ipv4, NotCarried},
		{Raw, 77, ipv4, NotCarried},
		{Raw, IPv4, ipv6, BadIPVersion},
		{IPoIB, IPv6, ipv4, BadIPVersion},
		{RawIPv6, IPv6, longer, BadLength},
		{Raw, Ethernet, make([]byte, 13), TooShort},
		{Raw, Ethernet, nil, TooShort},
		{IPoIB, IPv4, ipv4[:19], TooShort},
		{IPoIB, IPv4, make([]byte, 4093), TooLong},
		{RawIPv6, IPv6, make([]byte, 8181), TooLong},
	} {
		tp := template(tt.f)
		if err := tp.Validate(); err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, tp.Room)
		n, r := tp.Put(frame, tt.k, tt.d)
		_, r2 := tp.Cut(tt.k, tt.d, 0)
		if r != tt.want || r2 != tt.want || n != 0 || !bytes.Equal(frame, make([]byte, tp.Room)) {
			t.Errorf("%s of %d bytes in %s: %s and %s, want %s", tt.k, len(tt.d), tt.f, r, r2,
				tt.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*Template){
		"format": func(t *Template) { t.Format = Format(numFormats) },
		"VL":     func(t *Template) { t.VL = 16 },
		"SL":     func(t *Template) { t.SL = 16 },
		"flow":   func(t *Template) { t.FlowLabel = 1 << 20 },
		"room":   func(t *Template) { t.Room++ },
		"small":  func(t *Template) { t.Room = 12 + 39 + 2 },
		"none":   func(t *Template) { t.Room = 0 },
	} {
		tp := template(Raw)
		if err := tp.Validate(); err != nil {
			t.Fatal(err)
		}
		change(tp)
		if tp.Validate() == nil {
			t.Errorf("%s: %+v is valid", name, tp)
		}
	}
}

// TestNames: formats, kinds and reasons have names, each its own, and those of formats are
// found again.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for i := range 256 {
		for _, s := range []string{Format(i).String(), Kind(i).String(), Reason(i).String()} {
			if s == "" || seen[s] {
				t.Errorf("%d is named %q", i, s)
			}
			seen[s] = true
		}
		f, err := ParseFormat(Format(i).String())
		if (err == nil) != (i < numFormats) || err == nil && f != Format(i) {
			t.Errorf("%s: %v, %v", Format(i), f, err)
		}
	}
	if OK.Err() != nil || BadVCRC.Err() != error(BadVCRC) || BadVCRC.Error() != "encap: bad_vcrc" {
		t.Error(OK.Err(), BadVCRC.Err())
	}
	if got := (Native | Datagrams | Connections).String(); got != "native, UD, RC, UC" {
		t.Errorf("carriers are %q", got)
	}
}
