package roce

import (
	"testing"

	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestRehome: a QP counts for its new queue, and takes memory for early packets there, but not
// while some wait in that of the old one.
func TestRehome(t *testing.T) {
	var counts [2]counter.Set
	var homes [2]Common
	keys := &mem.Keys{}
	for i := range homes {
		homes[i] = Common{Keys: keys, EarlyPool: NewEarlyPool(4, 256), PKeys: DefaultPKeys()}
	}
	q := &QP{}
	q.posts = (*postLock)(q)
	q.count, q.common = &counts[0], &homes[0]
	q.rsp.early = newEarlyRequests(ExtSelectiveRepeat, homes[0].EarlyPool)
	if !q.Rehome(&counts[1], &homes[1]) || q.count != &counts[1] || q.common != &homes[1] {
		t.Fatal("it did not move")
	}
	var path wire.Template
	if err := path.Init(wire.Path{
		Framing: wire.FramingV2IPv4, Src: wire.GIDFromIPv4([4]byte{192, 0, 2, 1}),
		Dst: wire.GIDFromIPv4([4]byte{192, 0, 2, 2}), SrcPort: 0xc000, HopLimit: 64,
	}); err != nil {
		t.Fatal(err)
	}
	packet := roctest.Packet{Opcode: wire.RCSendOnly, PSN: 2}
	frame := packet.Frame(&path)
	p := new(wire.Packet)
	if reason := p.Decode(frame, nil); reason != wire.OK {
		t.Fatal(reason)
	}
	if !q.rsp.early.buffer.Put(p) || homes[1].EarlyPool.Free() != 3 {
		t.Fatalf("%d are free in the new queue", homes[1].EarlyPool.Free())
	}
	if q.Rehome(&counts[0], &homes[0]) || q.count != &counts[1] {
		t.Error("it moved with an early packet")
	}
}
