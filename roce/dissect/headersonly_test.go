package dissect

import (
	"net/netip"
	"path/filepath"
	"testing"

	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// ipoib is a SEND with an IP packet in it, as IPoIB has them.
func ipoib(t *testing.T) []byte {
	t.Helper()
	var path wire.Template
	if err := path.Init(wire.Path{
		Framing: wire.FramingV2IPv4, HopLimit: 64,
		Src: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")),
		Dst: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.2")),
	}); err != nil {
		t.Fatal(err)
	}
	packet := join([]byte{8, 0, 0, 0}, ipv4Header(protoUDP, udpLen), udpHeader(1, 0))
	p := roctest.Packet{Opcode: wire.UDSendOnly, DestQP: 0x11, Payload: packet}
	return p.Frame(&path)
}

// TestHeadersOnly: without a look at messages and datagrams inside, all else is the same.
func TestHeadersOnly(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(captures, "*.pcap"))
	if err != nil || len(names) == 0 {
		t.Fatal(len(names), err)
	}
	all, only := Dissector{}, Dissector{HeadersOnly: true}
	var p, q Packet
	inside := 0
	check := func(b []byte, length int) {
		t.Helper()
		all.Dissect(LinkEthernet, b, length, &p)
		only.Dissect(LinkEthernet, b, length, &q)
		if q.IsMessage || q.IsEncap {
			t.Fatalf("%x: its payload was looked into", b)
		}
		if p.IsMessage || p.IsEncap {
			inside++
		}
		q.IsMessage, q.Message, q.IsEncap, q.Encap = p.IsMessage, p.Message, p.IsEncap, p.Encap
		if got, want := found(&q), found(&p); got != want {
			t.Fatalf("%x: headers only\n%s\nall\n%s", b, got, want)
		}
	}
	for _, name := range names {
		for i, f := range frames(t, name) {
			check(f, len(f))
			check(f[:len(f)-i%len(f)], len(f))
		}
	}
	f := ipoib(t)
	check(f, len(f))
	if !p.IsEncap || inside == 0 {
		t.Errorf("%d packets had something inside", inside)
	}
}
