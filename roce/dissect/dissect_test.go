package dissect

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"xroce/roce/wire"
)

// around names the layers before the BTH.
func around(p *Packet) string {
	var names []string
	for _, l := range p.Layers() {
		if l.Kind == BTH {
			break
		}
		names = append(names, l.Kind.String())
	}
	return strings.Join(names, " ")
}

// TestWrapped: a packet of RoCE is found in whatever lies around it, with the same ICRC and the
// same addresses.
func TestWrapped(t *testing.T) {
	list := frames(t, filepath.Join(captures, "rc_write_v4.pcap"))
	var d Dissector
	var p Packet
	for _, w := range wrappings() {
		for i, f := range list {
			var want wire.Packet
			if r := want.Decode(f, nil); r != wire.OK {
				t.Fatal(r)
			}
			b := w.wrap(f)
			d.Dissect(w.link, b, len(b), &p)
			if !p.IsRoCE || p.ICRC != Good || p.RoCE.BTH != want.BTH || p.Src != addr(want.Src) ||
				p.Dst != addr(want.Dst) || !bytes.Equal(p.RoCE.Payload, want.Payload) {
				t.Fatalf("%s, packet %d: %v, refused %s, %s", w.name, i, p.IsRoCE, p.Refused,
					p.AppendInfo(nil))
			}
			if got := around(&p); got != w.layers {
				t.Fatalf("%s: around it %q, want %q", w.name, got, w.layers)
			}
		}
	}
}

// TestNative: native packets, on a link of their own, in ERF and behind Ethernet.
func TestNative(t *testing.T) {
	b := nativePacket(t)
	erf := make([]byte, erfLen)
	erf[8] = 21
	for _, tt := range []struct {
		link Link
		data []byte
	}{
		{LinkInfiniBand, b},
		{LinkUser0, b},
		{LinkERF, join(erf, b)},
		{LinkEthernet, join(ethernetHeader(etherNative), b, make([]byte, 20))},
	} {
		var d Dissector
		var p Packet
		d.Dissect(tt.link, tt.data, 0, &p)
		line := string(p.AppendInfo(p.AppendAddresses(nil)))
		if p.ICRC != Good || p.VCRC != Good ||
			!strings.HasPrefix(line, "LID 1 > LID 2InfiniBand ") {
			t.Errorf("%s: %v %v %s", tt.link, p.ICRC, p.VCRC, line)
		}
	}
	b[len(b)-1] ^= 1
	var d Dissector
	var p Packet
	if d.Dissect(LinkInfiniBand, b, 0, &p); p.ICRC != Good || p.VCRC != Bad ||
		!strings.HasSuffix(string(p.AppendInfo(nil)), "vcrc BAD") {
		t.Errorf("a wrong VCRC: %v %v", p.ICRC, p.VCRC)
	}
}

// TestSnapped: a packet of which only the headers were kept is dissected; its ICRC is not judged,
// and its payload has the length that it had.
func TestSnapped(t *testing.T) {
	var d Dissector
	var p Packet
	for _, f := range frames(t, filepath.Join(captures, "rc_write_v4.pcap")) {
		var want wire.Packet
		if r := want.Decode(f, nil); r != wire.OK {
			t.Fatal(r)
		}
		headers := 42 + wire.BTHLen + int(want.Spec.HeaderLen)
		for n := range f {
			d.Dissect(LinkEthernet, f[:n:n], len(f), &p)
			whole := n >= headers
			if p.IsRoCE != whole || whole && (p.ICRC != Cut || p.RoCE.BTH != want.BTH ||
				p.RoCE.PayloadLen() != want.PayloadLen()) {
				t.Fatalf("%d of %d bytes: %v, %s, %s", n, len(f), p.IsRoCE, p.ICRC, p.Refused)
			}
			p.Tree(new(Tree))
		}
	}
}

// TestRefused: what looks like RoCE and is not well-formed says why, and fragments are called so.
func TestRefused(t *testing.T) {
	f := frames(t, filepath.Join(captures, "rc_send_v4.pcap"))[0]
	change := func(at int, v byte) []byte {
		b := bytes.Clone(f)
		b[at] = v
		return b
	}
	for _, tt := range []struct {
		b    []byte
		want string
	}{
		{change(20, 0x20), "RoCE 58 IP fragment: impossible"}, // its checksum is wrong now
		{change(24, 1), "RoCE 58 refused: bad_ip_checksum"},
		{change(42, 0x1f), "RoCE 58 refused: unknown_opcode"},
		{change(43, 0x41), "RoCE 58 refused: bad_tver"},
		{change(37, 1), "UDP 58 49560 > 4609"},
		{change(23, 6), "TCP 58 49560 > 4791"},
		{change(12, 0x99), "Ethernet 58 type 0x9900"},
		{f[:20], "Ethernet 20 type 0x0800"},
		{f[:5], "EN10MB 5 data"},
		{nil, "EN10MB 0 data"},
	} {
		var d Dissector
		var p Packet
		d.Dissect(LinkEthernet, tt.b, len(tt.b), &p)
		if got := string(p.AppendInfo(nil)); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestManager: messages of the connection manager are named, with what they are about.
func TestManager(t *testing.T) {
	var lines []string
	var d Dissector
	var p Packet
	for _, name := range []string{"connect", "late_accept", "reject", "sidr"} {
		for _, f := range frames(t, filepath.Join(captures, "cm_"+name+"_v4.pcap")) {
			if d.Dissect(LinkEthernet, f, len(f), &p); p.IsManager {
				lines = append(lines, string(p.AppendInfo(nil)))
			}
		}
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{
		" [REQ tid=0x22312e915 comm=0x15e91223 service=0x0000000001065015 qpn=0x000082 psn=",
		" [REP ", " [RTU ", " [DREQ ", " [DREP ", " [MRA ", " [REJ ", " reason=", " [SIDR_REQ ",
		" [SIDR_REP ", " status=success qpn=0x",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}

// TestNoAllocation: a line of a packet takes no memory.
func TestNoAllocation(t *testing.T) {
	list := frames(t, filepath.Join(captures, "rc_write_v4.pcap"))
	var d Dissector
	var p Packet
	line := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(20, func() {
		for _, f := range list {
			d.Dissect(LinkEthernet, f, len(f), &p)
			line = p.AppendInfo(p.AppendAddresses(line[:0]))
		}
	}); n != 0 {
		t.Errorf("%v allocations for %d packets", n, len(list))
	}
}

// FuzzDissect: nothing makes a Dissector panic, and layers lie in the packet.
func FuzzDissect(f *testing.F) {
	list := frames(f, filepath.Join(captures, "cm_connect_v4.pcap"))
	for _, w := range wrappings() {
		f.Add(uint16(w.link), w.wrap(list[0]), 0)
	}
	f.Add(uint16(LinkInfiniBand), nativePacket(f), 0)
	f.Fuzz(func(t *testing.T, link uint16, data []byte, more int) {
		var d Dissector
		var p Packet
		var tree Tree
		for range 2 {
			d.Dissect(Link(link), data, len(data)+more, &p)
			p.AppendInfo(p.AppendAddresses(nil))
			p.Tree(&tree)
			for _, l := range p.Layers() {
				if l.Off < 0 || l.Len < 0 || l.Off+l.Len > max(p.Length, len(p.Data)) {
					t.Fatalf("%s at %d of %d", l.Kind, l.Off, p.Length)
				}
			}
		}
	})
}
