package dissect

import (
	"fmt"
	"path/filepath"
	"testing"
)

// found is all that a Dissector says of a packet.
func found(p *Packet) string {
	var t Tree
	p.Tree(&t)
	list := []any{
		p.Layers(), p.IsRoCE, p.Around, p.Refused, p.Snapped, p.ICRC, p.VCRC, p.Src, p.Dst,
		p.SrcMAC, p.DstMAC, p.SrcPort, p.DstPort, p.Tunnel, p.Fragment, p.IsManager, p.IsMessage,
		p.IsEncap, p.etherType, t.Headers(), string(p.AppendInfo(nil)),
	}
	if w := &p.RoCE; p.IsRoCE {
		list = append(list, w.SrcMAC, w.DstMAC, w.BTH, w.Payload, w.NetworkLen(), p.Pad())
	}
	if p.IsManager {
		list = append(list, p.Manager, p.MAD)
	}
	return fmt.Sprintf("%+v", list)
}

// TestPlain: a packet that is read in one go is what it is when it is read layer by layer, also
// damaged ones, cut ones and those with more behind them.
func TestPlain(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(captures, "*.pcap"))
	if err != nil || len(names) == 0 {
		t.Fatal(len(names), err)
	}
	var fast, slow Dissector
	var p, q Packet
	taken := 0
	check := func(b []byte, length int) {
		t.Helper()
		fast.Dissect(LinkEthernet, b, length, &p)
		q.reset(LinkEthernet, b, length)
		slow.link(LinkEthernet, 0, &q)
		if q.count == 0 {
			q.add(Other, 0, len(b))
		}
		if got, want := found(&p), found(&q); got != want {
			t.Fatalf("%x: in one go\n%s\nlayer by layer\n%s", b, got, want)
		}
		if p.IsRoCE {
			taken++
		}
	}
	for _, name := range names {
		for i, f := range frames(t, name) {
			check(f, len(f))
			check(append(f[:len(f):len(f)], 0, 0), len(f)+2)
			check(f[:len(f)-i%len(f)], len(f))
			damaged := append([]byte(nil), f...)
			damaged[i%min(len(f), 60)] ^= 1 << (i % 8)
			check(damaged, len(f))
		}
	}
	if taken == 0 {
		t.Error("none of them was a packet of RoCE")
	}
}
