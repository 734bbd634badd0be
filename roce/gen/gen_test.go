package gen_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"pgregory.net/rapid"

	"xroce/roce/gen"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// path is one from 192.0.2.1 to 192.0.2.2, or of IPv6.
func path(v6, tagged bool) wire.Path {
	p := wire.Path{
		SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2}, HopLimit: 64,
		Src:     wire.GIDFromIPv4([4]byte{192, 0, 2, 1}),
		Dst:     wire.GIDFromIPv4([4]byte{192, 0, 2, 2}),
		SrcPort: 0xc001,
	}
	if tagged {
		p.Tags = wire.VLAN(5).Tags(3)
	}
	if v6 {
		p.Src = wire.GIDFromAddr(netip.MustParseAddr("2001:db8::1"))
		p.Dst = wire.GIDFromAddr(netip.MustParseAddr("2001:db8::2"))
	}
	return p
}

const maxFrame = 1518

func flow(t interface{ Fatal(...any) }, c gen.Config) *gen.Flow {
	if c.MaxFrame == 0 {
		c.MaxFrame = maxFrame
	}
	f, err := gen.NewFlow(c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestUDPFrames: gopacket, which is others' work, finds the frames right, and the reader finds
// in them what was said.
func TestUDPFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v6, tagged := rapid.Bool().Draw(t, "v6"), rapid.Bool().Draw(t, "tagged")
		size := rapid.Uint64Range(86, maxFrame).Draw(t, "size")
		f := flow(t, gen.Config{
			Path: path(v6, tagged), DstPort: 9000, Sizes: gen.List(size), Flow: 7, Run: 3,
			Fill: gen.FillRandom,
			Vary: []gen.Vary{
				{Field: gen.FieldSrcPort, Values: gen.List(1000, 2000)},
				{Field: gen.FieldSrcIP, Values: gen.List(0x0a000001, 0x0a000002)},
			},
		})
		var r gen.Reader
		frame := make([]byte, maxFrame)
		for i := range uint64(4) {
			n := f.Next(frame, 12345)
			if n != int(size) {
				t.Fatalf("%d bytes, not %d", n, size)
			}
			p := gopacket.NewPacket(frame[:n], layers.LayerTypeEthernet, gopacket.Default)
			if e := p.ErrorLayer(); e != nil {
				t.Fatal(e.Error())
			}
			udp := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
			if udp.DstPort != 9000 || uint64(udp.SrcPort) != 1000+i%2*1000 {
				t.Fatalf("ports %d, %d", udp.SrcPort, udp.DstPort)
			}
			checksums(t, p, frame[:n])
			a := r.Read(frame[:n], nil)
			want := gen.Signature{Kind: gen.Data, Run: 3, Flow: 7, Seq: i, Time: 12345}
			if a.Found != gen.Signed || a.Signature != want || a.Src.Port() != uint16(udp.SrcPort) {
				t.Fatalf("%+v, want %+v", a, want)
			}
		}
	})
}

// checksums makes gopacket write the frame anew, which must come to the same bytes. UDP over
// IPv4 has no checksum.
func checksums(t *rapid.T, p gopacket.Packet, frame []byte) {
	var list []gopacket.SerializableLayer
	options := gopacket.SerializeOptions{ComputeChecksums: true}
	for _, l := range p.Layers() {
		switch l := l.(type) {
		case *layers.IPv6:
			_ = p.Layer(layers.LayerTypeUDP).(*layers.UDP).SetNetworkLayerForChecksum(l)
			list = append(list, l)
		case *layers.IPv4:
			_ = p.Layer(layers.LayerTypeUDP).(*layers.UDP).SetNetworkLayerForChecksum(l)
			frame = bytes.Clone(frame)
			l.Checksum = 0
			list = append(list, l)
		case gopacket.SerializableLayer:
			list = append(list, l)
		}
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, options, list...); err != nil {
		t.Fatal(err)
	}
	got := bytes.Clone(b.Bytes())
	if p.Layer(layers.LayerTypeIPv4) != nil {
		udp := len(frame) - len(p.Layer(layers.LayerTypeUDP).LayerPayload()) - 2
		got[udp], got[udp+1] = 0, 0
	}
	if !bytes.Equal(got, frame) {
		t.Fatalf("gopacket makes\n%x\nof\n%x", got, frame)
	}
}

// TestEthernetFrames: raw frames carry their type and signature.
func TestEthernetFrames(t *testing.T) {
	f := flow(t, gen.Config{Kind: gen.KindEthernet, Path: path(false, true), Sizes: gen.List(60)})
	frame := make([]byte, maxFrame)
	n := f.Next(frame, 1)
	var r gen.Reader
	a := r.Read(frame[:n], nil)
	if n != 60 || a.Found != gen.Signed || binary.BigEndian.Uint16(frame[16:]) != 0x88b6 {
		t.Errorf("%d bytes, %+v: %x", n, a, frame[:n])
	}
}

// TestRoCESequences: packets are well-formed with right ICRCs, PSNs go on as a responder
// expects them, and lengths agree with the payloads that follow.
func TestRoCESequences(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for name, ops := range map[string][]wire.Opcode{
			"datagrams": {wire.UDSendOnly},
			"messages":  {wire.RCSendFirst, wire.RCSendMiddle, wire.RCSendLastImm},
			"writes": {
				wire.RCWriteFirst, wire.RCWriteMiddle, wire.RCWriteLast, wire.RCWriteOnly,
			},
			"others": {
				wire.RCReadRequest, wire.RCFetchAdd, wire.RCCmpSwap, wire.RCAtomicWrite,
				wire.RCFlush, wire.RCSendOnlyInv,
			},
		} {
			t.Run(name, func(t *testing.T) { sequence(t, v6, ops) })
		}
	}
}

func sequence(t *testing.T, v6 bool, ops []wire.Opcode) {
	p := path(v6, v6)
	if !v6 {
		p.Framing = wire.FramingV2IPv4
	}
	f := flow(t, gen.Config{
		Kind: gen.KindRoCE, Path: p, Sizes: gen.List(150, 200),
		RoCE: gen.RoCE{
			Opcodes: ops, DestQP: 0x11, PSN: 0xfffffe, RKey: 0x77, VA: 4096, MTU: wire.MTU256,
			ReadLen: 1000,
		},
		Vary: []gen.Vary{
			{Field: gen.FieldRKey, Values: gen.List(1, 2)},
			{Field: gen.FieldTTL, Values: gen.List(9)},
		},
	})
	frame := make([]byte, maxFrame)
	psn, total, left := wire.PSN(0xfffffe), uint32(0), uint32(0)
	for i := range 3 * len(ops) {
		n := f.Next(frame, 5)
		op := ops[i%len(ops)]
		if err := roctest.Frame(frame[:n], roctest.Opcode(op), roctest.PSN(psn)); err != nil {
			t.Fatal(err)
		}
		var got wire.Packet
		got.Decode(frame[:n], nil)
		if got.HopLimit != 9 || got.BTH.DestQP != 0x11 {
			t.Fatalf("hop limit %d, %s", got.HopLimit, got.BTH)
		}
		psn = psn.Add(1)
		if op == wire.RCReadRequest {
			psn = psn.Add(3)
		}
		if got.Spec.Has(wire.HasRETH) && got.Spec.Is(wire.ClassWrite) {
			total, left = got.RETH().DMALen, got.RETH().DMALen
		}
		if got.Spec.Is(wire.ClassWrite) && total > 0 {
			left -= uint32(got.PayloadLen())
			if got.Spec.Is(wire.ClassLast) && left != 0 {
				t.Fatalf("%s: %d of %d bytes did not come", got.Spec.Name, left, total)
			}
		}
	}
}

// TestEndIsSigned: whatever the flow is, its end can be read and says how many frames it had that
// a sink can count.
func TestEndIsSigned(t *testing.T) {
	for _, tt := range []struct {
		gen.Config
		signed uint64
	}{
		{gen.Config{Path: path(false, false), Sizes: gen.List(64)}, 5},
		{gen.Config{
			Kind: gen.KindEthernet, Path: path(false, false), Sizes: gen.List(64),
		}, 5},
		{gen.Config{Kind: gen.KindRoCE, Path: path(true, false), Sizes: gen.List(128)}, 5},
		{gen.Config{
			Kind: gen.KindRoCE, Path: path(true, false), Sizes: gen.List(200),
			RoCE: gen.RoCE{Opcodes: []wire.Opcode{wire.RCReadRequest}},
		}, 0},
	} {
		f := flow(t, tt.Config)
		frame := make([]byte, maxFrame)
		for range 5 {
			f.Next(frame, 0)
		}
		var r gen.Reader
		a := r.Read(frame[:f.End(frame, 9)], nil)
		if a.Signature.Kind != gen.End || a.Signature.Seq != tt.signed || f.Signed() != tt.signed ||
			a.Signature.Time != 9 || f.Sent() != 5 {
			t.Errorf("%s: %+v", tt.Kind, a)
		}
	}
}

// TestUnsignedAreNotLost: packets without room for a signature are between those that have one,
// and a sink misses none.
func TestUnsignedAreNotLost(t *testing.T) {
	f := flow(t, gen.Config{
		Kind: gen.KindRoCE, Path: path(true, false), Sizes: gen.List(200),
		RoCE: gen.RoCE{Opcodes: []wire.Opcode{
			wire.RCSendOnly, wire.RCReadRequest, wire.CNP, wire.RCFetchAdd, wire.RCSendOnly,
		}},
	})
	frame := make([]byte, maxFrame)
	var r gen.Reader
	var track gen.Track
	unsigned := 0
	for range 50 {
		switch a := r.Read(frame[:f.Next(frame, 0)], nil); a.Found {
		case gen.Signed:
			track.Add(a.Signature.Seq)
		case gen.Unsigned:
			unsigned++
		default:
			t.Fatalf("%+v", a)
		}
	}
	a := r.Read(frame[:f.End(frame, 9)], nil)
	if c := track.Counts(a.Signature.Seq); c.Received != 20 || c.Lost != 0 || unsigned != 30 {
		t.Errorf("%+v, %d unsigned", c, unsigned)
	}
}

// TestFaults: each mistake is made when its rule says, and as its name says.
func TestFaults(t *testing.T) {
	make := func(fault string) (list []gen.Arrival, bad, keys int) {
		rule, err := gen.ParseFault(fault)
		if err != nil {
			t.Fatal(err)
		}
		f := flow(t, gen.Config{
			Kind: gen.KindRoCE, Path: path(false, false), Sizes: gen.List(200),
			RoCE: gen.RoCE{
				Opcodes: []wire.Opcode{wire.UCWriteOnly}, RKey: 0x77, MTU: wire.MTU256,
			},
			Faults: []gen.Fault{rule},
		})
		var r gen.Reader
		frame := make([]byte, maxFrame)
		for range 10 {
			n := f.Next(frame, 0)
			a := r.Read(frame[:n], nil)
			list = append(list, a)
			if a.Found == gen.BadICRC {
				bad++
			}
			var p wire.Packet
			p.Decode(frame[:n], nil)
			if p.BTH.Opcode == wire.UCWriteOnly && p.RETH().RKey != 0x77 {
				keys++
			}
		}
		if n := f.Injected()[rule.Kind]; n != 2 && fault != "gap=5" && fault != "swap=5" {
			t.Errorf("%s: %d injected", fault, n)
		}
		return list, bad, keys
	}
	order := func(list []gen.Arrival) (s []uint64) {
		for _, a := range list {
			s = append(s, a.Signature.Seq)
		}
		return s
	}
	for fault, want := range map[string][]uint64{
		"gap=5":       {0, 1, 2, 3, 5, 6, 7, 8, 10, 11},
		"duplicate=4": {0, 1, 2, 3, 3, 4, 5, 6, 7, 7},
		"swap=5":      {0, 1, 2, 3, 5, 4, 6, 7, 8, 10},
	} {
		list, _, _ := make(fault)
		got := order(list)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: %d, want %d", fault, got, want)
			}
		}
	}
	if _, bad, _ := make("bad_icrc=5"); bad != 2 {
		t.Errorf("%d wrong ICRCs", bad)
	}
	if _, _, keys := make("bad_key=5"); keys != 2 {
		t.Errorf("%d wrong keys", keys)
	}
	list, _, _ := make("order=5")
	if list[4].Opcode != wire.UCSendMiddle || list[5].Opcode != wire.UCWriteOnly {
		t.Errorf("opcodes %s, %s", list[4].Opcode, list[5].Opcode)
	}
	for _, text := range []string{"", "gap", "gap=0", "gap=x", "lost=4", "gap=200%", "gap=-1%"} {
		if f, err := gen.ParseFault(text); err == nil {
			t.Errorf("%q is %+v", text, f)
		}
	}
}

// TestConfigRefused: what makes no frames is refused and named.
func TestConfigRefused(t *testing.T) {
	v4 := path(false, false)
	for i, c := range []gen.Config{
		{Path: v4},
		{Path: v4, Sizes: gen.List(61)},
		{Path: v4, Sizes: gen.List(64, 2000)},
		{Path: v4, Sizes: gen.List(64), Vary: []gen.Vary{
			{Field: gen.FieldRKey, Values: gen.List(1)},
		}},
		{Path: v4, Sizes: gen.List(64), Vary: []gen.Vary{
			{Field: gen.FieldVLAN, Values: gen.List(1)},
		}},
		{Path: v4, Sizes: gen.List(64), Vary: []gen.Vary{
			{Field: gen.FieldSrcPort, Values: gen.List(65536)},
		}},
		{Path: v4, Sizes: gen.List(100), Kind: gen.KindRoCE, Vary: []gen.Vary{
			{Field: gen.FieldDestQP, Values: gen.List(1 << 24)},
		}},
		{Path: v4, Sizes: gen.List(100), Kind: gen.KindRoCE, Vary: []gen.Vary{
			{Field: gen.FieldRKey, Values: gen.List(1 << 32)},
		}},
		{Path: v4, Sizes: gen.List(100), Kind: gen.KindRoCE, Vary: []gen.Vary{
			{Field: gen.FieldPKey, Values: gen.List(1 << 16)},
		}},
		{Path: v4, Sizes: gen.List(64), Faults: []gen.Fault{{Kind: gen.FaultBadICRC, Every: 1}}},
		{Path: v4, Sizes: gen.List(64), Kind: gen.KindRoCE},
		{Path: v4, Sizes: gen.List(1500), Kind: gen.KindRoCE},
		{Path: v4, Sizes: gen.List(100), Kind: gen.KindRoCE, RoCE: gen.RoCE{
			Opcodes: []wire.Opcode{0x1f},
		}},
		{Path: v4, Sizes: gen.List(100), Kind: gen.KindRoCE, RoCE: gen.RoCE{DestQP: 1 << 24}},
		// A SEND has no key, and a FIRST packet in its place the length of the path MTU.
		{Path: v4, Sizes: gen.List(100), Kind: gen.KindRoCE, RoCE: gen.RoCE{
			Opcodes: []wire.Opcode{wire.RCSendOnly},
		}, Faults: []gen.Fault{{Kind: gen.FaultBadKey, Every: 1}}},
		{Path: v4, Sizes: gen.List(100), Kind: gen.KindRoCE, RoCE: gen.RoCE{
			Opcodes: []wire.Opcode{wire.RCSendOnly}, MTU: wire.MTU2048,
		}, Faults: []gen.Fault{{Kind: gen.FaultOrder, Every: 1}}},
	} {
		c.MaxFrame = maxFrame
		if _, err := gen.NewFlow(c); !errors.Is(err, gen.ErrConfig) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestNoAllocations: neither making nor reading a frame allocates.
func TestNoAllocations(t *testing.T) {
	frame := make([]byte, maxFrame)
	var r gen.Reader
	var track gen.Track
	for _, c := range []gen.Config{
		{Path: path(false, false), Sizes: gen.List(64, 594, 1514)},
		{Path: path(true, false), Sizes: gen.List(100)},
		{Kind: gen.KindRoCE, Path: path(false, false), Sizes: gen.List(100), Faults: []gen.Fault{
			{Kind: gen.FaultSwap, Every: 2},
		}},
	} {
		if !c.Path.Dst.IsIPv4() {
			c.Vary = []gen.Vary{{Field: gen.FieldDstIP, Values: gen.List(1, 2, 3)}}
		}
		f := flow(t, c)
		if n := testing.AllocsPerRun(100, func() {
			a := r.Read(frame[:f.Next(frame, 1)], nil)
			track.Add(a.Signature.Seq)
		}); n != 0 {
			t.Errorf("%s: %g allocations", c.Kind, n)
		}
	}
}

// TestUDPFramesAlike: gopacket finds the frames right of which no header varies but the length,
// whatever is in those headers.
func TestUDPFramesAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := path(rapid.Bool().Draw(t, "v6"), rapid.Bool().Draw(t, "tagged"))
		p.TClass, p.HopLimit = rapid.Byte().Draw(t, "tos"), rapid.Byte().Draw(t, "ttl")
		if p.Dst.IsIPv4() {
			addr := rapid.Uint32().Draw(t, "dst")
			p.Dst = wire.GIDFromIPv4([4]byte(binary.BigEndian.AppendUint32(nil, addr)))
		}
		f := flow(t, gen.Config{Path: p, Sizes: gen.List(86, 1518, 87, 594), Fill: gen.FillRandom})
		frame := make([]byte, maxFrame)
		for _, size := range []int{86, 1518, 87, 594, 86} {
			n := f.Next(frame, 12345)
			if n != size {
				t.Fatalf("%d bytes, not %d", n, size)
			}
			p := gopacket.NewPacket(frame[:n], layers.LayerTypeEthernet, gopacket.Default)
			if e := p.ErrorLayer(); e != nil {
				t.Fatal(e.Error())
			}
			checksums(t, p, frame[:n])
			udp := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
			if int(udp.Length) != 8+len(udp.Payload) {
				t.Fatalf("a datagram of %d bytes that says %d", len(udp.Payload), udp.Length)
			}
		}
	})
}

// BenchmarkNext is what a frame of 64 bytes costs.
func BenchmarkNext(b *testing.B) {
	f := flow(b, gen.Config{Path: path(false, false), Sizes: gen.List(64)})
	frame := make([]byte, maxFrame)
	for b.Loop() {
		f.Next(frame, 1)
	}
}
