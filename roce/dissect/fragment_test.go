package dissect

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// datagramFrame is a WRITE of n bytes over IPv4 or IPv6, which may be cut.
func datagramFrame(t testing.TB, v6 bool, n int) []byte {
	t.Helper()
	path := wire.Path{
		Framing: wire.FramingV2IPv4, HopLimit: 64, SrcPort: 0xc001,
		Src: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")),
		Dst: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.2")),
	}
	if v6 {
		path.Framing = wire.FramingV2IPv6
		path.Src = wire.GIDFromAddr(netip.MustParseAddr("2001:db8::1"))
		path.Dst = wire.GIDFromAddr(netip.MustParseAddr("2001:db8::2"))
	}
	var template wire.Template
	if err := template.Init(path); err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, n)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	p := roctest.Packet{
		Opcode: wire.RCWriteOnly, DestQP: 0x11, PSN: 5, Payload: payload,
		RETH: wire.RETH{VA: 0x1000, RKey: 7, DMALen: uint32(n)},
	}
	frame := p.Frame(&template)
	if v6 {
		return frame
	}
	frame[14+6] &^= 0x40 // it may be cut, which the ICRC covers
	end := len(frame) - wire.ICRCLen
	binary.LittleEndian.PutUint32(frame[end:], wire.ICRC(path.Framing, frame[14:end], nil))
	sumHeader(frame[14:34])
	return frame
}

// sumHeader writes the checksum of an IPv4 header.
func sumHeader(h []byte) {
	h[10], h[11] = 0, 0
	binary.BigEndian.PutUint16(h[10:], ^headerSum(h))
}

// cut makes fragments of a frame, numbered id, with as many bytes of data as sizes says, and the
// rest in the last.
func cut(frame []byte, id uint16, sizes ...int) (list [][]byte) {
	if frame[12] == 0x86 {
		return cutV6(frame, uint32(id), sizes...)
	}
	head, data := frame[:34], frame[34:]
	at := 0
	for _, n := range append(sizes, len(data)) {
		n = min(n, len(data)-at)
		b := join(head, data[at:at+n])
		binary.BigEndian.PutUint16(b[16:], uint16(20+n))
		binary.BigEndian.PutUint16(b[18:], id)
		field := uint16(at / 8)
		if at += n; at < len(data) {
			field |= ipv4More
		}
		binary.BigEndian.PutUint16(b[20:], field)
		sumHeader(b[14:34])
		list = append(list, b)
	}
	return list
}

func cutV6(frame []byte, id uint32, sizes ...int) (list [][]byte) {
	head, data := frame[:54], frame[54:]
	at := 0
	for _, n := range append(sizes, len(data)) {
		n = min(n, len(data)-at)
		ext := []byte{protoUDP, 0}
		field := uint16(at)
		if at += n; at < len(data) {
			field |= ipv6More
		}
		ext = binary.BigEndian.AppendUint16(ext, field)
		ext = binary.BigEndian.AppendUint32(ext, id)
		b := join(head, ext, data[at-n:at])
		binary.BigEndian.PutUint16(b[18:], uint16(8+n))
		b[20] = ipv6Fragment
		list = append(list, b)
	}
	return list
}

// ownID gives a frame of IPv4 an identification of its own, which its ICRC covers.
func ownID(frame []byte, id uint16) {
	binary.BigEndian.PutUint16(frame[18:], id)
	end := len(frame) - wire.ICRCLen
	icrc := wire.ICRC(wire.FramingV2IPv4, frame[14:end], nil)
	binary.LittleEndian.PutUint32(frame[end:], icrc)
	sumHeader(frame[14:34])
}

// lines are what a Dissector says of frames, one a second after the other.
func lines(d *Dissector, frames ...[]byte) (list []string) {
	var p Packet
	for _, f := range frames {
		d.Dissect(LinkEthernet, f, len(f), &p)
		list = append(list, string(p.AppendInfo(nil)))
	}
	return list
}

// TestFragments: a packet of RoCE in fragments is put together, in whatever order they come, with
// its BTH, its payload and its ICRC, which a wrong byte makes wrong.
func TestFragments(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		frame := datagramFrame(t, v6, 1000)
		if !v6 {
			ownID(frame, 77)
		}
		list := cut(frame, 77, 400, 320)
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}} {
			var d Dissector
			var p Packet
			for i, k := range order {
				f := list[k]
				if d.Dissect(LinkEthernet, f, len(f), &p); i < 2 && (p.IsRoCE || !p.Fragment) {
					t.Fatalf("%v: fragment %d is a packet", order, k)
				}
			}
			if !p.IsRoCE || !p.Fragment || p.Joining != Joined || p.Fragments != 3 ||
				p.ICRC != Good || p.RoCE.BTH.PSN != 5 || p.RoCE.PayloadLen() != 1000 ||
				!bytes.Equal(p.RoCE.Payload, frame[len(frame)-1004:len(frame)-4]) {
				t.Fatalf("IPv6 %v, %v: %s", v6, order, p.AppendInfo(nil))
			}
			if line := string(p.AppendInfo(nil)); !strings.HasSuffix(line,
				" icrc ok of 3 IP fragments") {
				t.Errorf("%s", line)
			}
			if got := len(p.Pad()); got != 0 {
				t.Errorf("%d bytes of padding", got)
			}
		}
		bad := bytes.Clone(list[1])
		bad[len(bad)-3] ^= 1
		var d Dissector
		if got := lines(&d, list[0], bad, list[2])[2]; !strings.Contains(got, "icrc BAD") {
			t.Errorf("a wrong byte: %s", got)
		}
	}
}

// TestFragmentsNamed: what comes of fragments that are no use is said, and none of them makes a
// packet.
func TestFragmentsNamed(t *testing.T) {
	frame := datagramFrame(t, false, 1000)
	list := cut(frame, 7, 400, 320)
	change := func(b []byte, f func(b []byte)) []byte {
		b = bytes.Clone(b)
		f(b)
		sumHeader(b[14:34])
		return b
	}
	shifted := change(list[1], func(b []byte) { b[21]-- })
	other := change(list[1], func(b []byte) { b[60] ^= 1 })
	odd := change(list[1], func(b []byte) { b[17]-- })
	beyond := change(list[2], func(b []byte) { b[20], b[21] = 0x1f, 0xff })
	early := change(list[2], func(b []byte) { b[20], b[21] = 0, 2 })
	crooked := bytes.Clone(list[1])
	crooked[24] ^= 0xff // the checksum
	const overlaps = "overlaps another one"
	for name, tt := range map[string]struct {
		frames [][]byte
		want   string // of the last but one
		last   string
	}{
		"overlap":      {[][]byte{list[0], shifted, list[2]}, overlaps, "repeated"},
		"other bytes":  {[][]byte{list[0], list[1], other, list[2]}, overlaps, "repeated"},
		"repeated":     {[][]byte{list[0], list[1], list[1], list[2]}, "repeated", ""},
		"odd":          {[][]byte{list[0], odd, list[2]}, "impossible", "repeated"},
		"beyond":       {[][]byte{list[0], beyond, list[1]}, "impossible", "repeated"},
		"two ends":     {[][]byte{list[0], list[1], early, list[2]}, overlaps, "repeated"},
		"bad checksum": {[][]byte{list[0], crooked, list[2]}, "impossible", "IP fragment"},
	} {
		var d Dissector
		got := lines(&d, tt.frames...)
		n := len(got)
		if !strings.HasSuffix(got[n-2], "IP fragment: "+tt.want) {
			t.Errorf("%s: %q", name, got)
		}
		if tt.last == "" {
			tt.last = "of 3 IP fragments"
		}
		if !strings.HasSuffix(got[n-1], tt.last) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestFragmentsOfOthers: fragments of datagrams that are none of RoCE are not called so, those
// that are not UDP are left alone, and a snapped one makes nothing whole.
func TestFragmentsOfOthers(t *testing.T) {
	frame := datagramFrame(t, false, 1000)
	frame[36] = 1 // another port
	var d Dissector
	got := lines(&d, cut(frame, 7, 400)...)
	if !strings.HasPrefix(got[0], "IPv4 ") || !strings.HasPrefix(got[1], "UDP ") {
		t.Errorf("%q", got)
	}
	frame = datagramFrame(t, false, 1000)
	frame[23] = 1
	got = lines(&d, cut(frame, 8, 400)...)
	if !strings.HasSuffix(got[1], "IP fragment") {
		t.Errorf("ICMP: %q", got)
	}
	list := cut(datagramFrame(t, false, 1000), 9, 400)
	var p Packet
	d.Dissect(LinkEthernet, list[0][:60], len(list[0]), &p)
	if line := string(p.AppendInfo(nil)); line != "RoCE 434 IP fragment" {
		t.Errorf("a snapped one: %s", line)
	}
	if d.Dissect(LinkEthernet, list[1], len(list[1]), &p); p.IsRoCE {
		t.Errorf("of a snapped one: %s", p.AppendInfo(nil))
	}
}

// TestFragmentsForgotten: after its time, or behind too many others, a datagram does not become
// whole, and its number may come again.
func TestFragmentsForgotten(t *testing.T) {
	list := cut(datagramFrame(t, false, 1000), 7, 400)
	whole := func(late clock.Time, others int) bool {
		var d Dissector
		var p Packet
		d.Dissect(LinkEthernet, list[0], len(list[0]), &p)
		for i := range others {
			f := cut(datagramFrame(t, false, 1000), uint16(100+i), 400)[0]
			d.Dissect(LinkEthernet, f, len(f), &p)
		}
		d.Now += late
		d.Dissect(LinkEthernet, list[1], len(list[1]), &p)
		return p.IsRoCE
	}
	for _, tt := range []struct {
		late   clock.Time
		others int
		want   bool
	}{
		{FragmentLife, 0, true},
		{FragmentLife + 1, 0, false},
		{-FragmentLife - 1, 0, false},
		{0, maxDatagrams - 1, true},
		{0, maxDatagrams, false},
	} {
		if got := whole(tt.late, tt.others); got != tt.want {
			t.Errorf("%d ns late behind %d others: %v", tt.late, tt.others, got)
		}
	}
	var d Dissector
	got := lines(&d, slices.Concat(list, list[1:], list)...)
	for i, want := range []string{
		"IP fragment", "fragments", "repeated", "IP fragment", "fragments",
	} {
		if !strings.HasSuffix(got[i], want) {
			t.Errorf("%d: %q, want %s", i, got[i], want)
		}
	}
}

// TestFragmentsBounded: however fragments come, what is kept of them is bounded.
func TestFragmentsBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var d Dissector
	var p Packet
	frame := datagramFrame(t, false, 64)
	for range 50_000 {
		b := cut(frame, uint16(random.IntN(300)), 40)[random.IntN(2)]
		field := uint16(random.IntN(1<<13)) | uint16(random.IntN(2))<<13
		if random.IntN(3) > 0 {
			field &= 0x203f
		}
		binary.BigEndian.PutUint16(b[20:], field)
		sumHeader(b[14:34])
		d.Now += clock.Time(random.Int64N(int64(clock.Second)))
		d.Dissect(LinkEthernet, b, len(b), &p)
	}
	d.fragments.check(t)
}

// check holds the bounds of an assembler, and that what is there of a datagram is in order.
func (a *assembler) check(t testing.TB) {
	t.Helper()
	if len(a.datagrams) > maxDatagrams || cap(a.frame) > 4*maxDatagramLen ||
		cap(a.whole) > 4*maxDatagramLen {
		t.Fatalf("%d datagrams, %d and %d bytes", len(a.datagrams), cap(a.frame), cap(a.whole))
	}
	for i := range a.datagrams {
		g := &a.datagrams[i]
		last := -1
		for _, s := range g.spans {
			if s.begin <= last || s.end <= s.begin || s.end > len(g.data) {
				t.Fatalf("spans %v of %d bytes", g.spans, len(g.data))
			}
			last = s.end
		}
		if len(g.spans) > maxSpans || cap(g.data) > 2*maxDatagramLen || cap(g.header) > 1024 {
			t.Fatalf("%d spans, %d bytes", len(g.spans), cap(g.data))
		}
	}
}

// TestFragmentsInTunnels: fragments inside of a tunnel, and a tunnel that was cut itself: then the
// packet of RoCE is none.
func TestFragmentsInTunnels(t *testing.T) {
	frame := datagramFrame(t, false, 1000)
	ownID(frame, 3)
	for _, w := range wrappings() {
		var d Dissector
		var p Packet
		for _, f := range cut(frame, 3, 400) {
			b := w.wrap(f)
			d.Dissect(w.link, b, len(b), &p)
		}
		if !p.IsRoCE || p.ICRC != Good || !p.Fragment || p.Fragments != 2 {
			t.Errorf("in %s: %s", w.name, p.AppendInfo(nil))
		}
		if w.name != "VXLAN" {
			continue
		}
		for _, f := range cut(w.wrap(frame), 4, 40, 640) {
			d.Dissect(w.link, f, len(f), &p)
		}
		if !p.IsRoCE || p.ICRC != Good || p.Fragment || p.Fragments != 3 {
			t.Errorf("%s in fragments: %s", w.name, p.AppendInfo(nil))
		}
		// And both: a fragment inside of what was cut.
		for i, f := range cut(frame, 5, 400) {
			for _, f := range cut(w.wrap(f), uint16(9+i), 40, 160) {
				d.Dissect(w.link, f, len(f), &p)
			}
		}
		if !p.IsRoCE || p.ICRC != Bad || !p.Fragment { // its number was another one
			t.Errorf("both: %s", p.AppendInfo(nil))
		}
	}
}

// TestFragmentsTshark: tshark puts the same packets together, and reads the same in them.
func TestFragmentsTshark(t *testing.T) {
	var packets []captured
	for i, v6 := range []bool{false, true} {
		frame := datagramFrame(t, v6, 1000)
		if !v6 {
			ownID(frame, 77)
		}
		list := cut(frame, uint16(77+i), 400, 320)
		for _, k := range []int{1, 0, 2} {
			packets = append(packets, captured{LinkEthernet, list[k]})
		}
	}
	fields := []string{
		"infiniband.bth.psn", "infiniband.reth.va", "infiniband.invariant.crc",
		"ip.fragment.count", "ip.reassembled.length", "ipv6.fragment.count",
		"ipv6.reassembled.length",
	}
	var d Dissector
	var p Packet
	whole := 0
	for i, row := range tshark(t, packets, fields) {
		d.Dissect(LinkEthernet, packets[i].data, len(packets[i].data), &p)
		if p.IsRoCE {
			whole++
		}
		for j, name := range fields {
			if got, want := theirs(name, row[j]), ours(&p)[name]; !slices.Equal(got, want) {
				t.Errorf("packet %d, %s: tshark %v, we %v", i+1, name, got, want)
			}
		}
	}
	if whole != 2 {
		t.Errorf("%d packets", whole)
	}
}

// FuzzFragments: nothing that looks like fragments makes a Dissector panic or grow.
func FuzzFragments(f *testing.F) {
	for _, v6 := range []bool{false, true} {
		var seed []byte
		for _, b := range cut(datagramFrame(f, v6, 64), 7, 40, 8) {
			seed = append(append(seed, byte(len(b))), b...)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d Dissector
		var p Packet
		var tree Tree
		for len(data) > 1 {
			n := min(int(data[0]), len(data)-1)
			frame := data[1 : 1+n]
			if len(frame) > 34 && frame[12] == 8 && frame[14] == 0x45 {
				sumHeader(frame[14:34])
			}
			d.Dissect(LinkEthernet, frame, n, &p)
			p.AppendInfo(p.AppendAddresses(nil))
			p.Tree(&tree)
			p.Pad()
			for _, l := range p.Layers() {
				if l.Off < 0 || l.Len < 0 || l.Off+l.Len > max(p.Length, len(p.Data)) {
					t.Fatalf("%s at %d, %d of %d", l.Kind, l.Off, l.Len, len(p.Data))
				}
			}
			data = data[1+n:]
		}
		d.fragments.check(t)
	})
}
