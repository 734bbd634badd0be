package recovery_test

import (
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/recovery"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// packetOf returns a decoded WRITE packet with a PSN, whose payload tells the PSN.
func packetOf(t interface{ Fatal(...any) }, psn wire.PSN) *wire.Packet {
	var path wire.Template
	err := path.Init(wire.Path{
		Framing: wire.FramingV2IPv4, Src: wire.GIDFromIPv4([4]byte{192, 0, 2, 1}),
		Dst: wire.GIDFromIPv4([4]byte{192, 0, 2, 2}), SrcPort: 0xc000, HopLimit: 64,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := roctest.Packet{
		Opcode: wire.RCWriteMiddle, PSN: psn,
		Payload: []byte{byte(psn >> 16), byte(psn >> 8), byte(psn), 0},
	}
	var packet wire.Packet
	if reason := packet.Decode(p.Frame(&path), nil); reason != wire.OK {
		t.Fatal(reason)
	}
	return &packet
}

// TestReassemblyModel: a buffer does what a map would that is bounded by the span and
// by the pool, and the pool gets back all it gave, wherever the PSNs wrap.
func TestReassemblyModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const room = 40
		pool := recovery.NewPool(room, 4096)
		pool.Reserve()
		var r recovery.Reassembly
		r.Init(pool)
		base := wire.PSN(rapid.SampledFrom([]uint32{0, 5, 0xffff80, 0xffffff}).Draw(t, "base"))
		r.Advance(base)
		model := map[wire.PSN]bool{}
		near := rapid.Uint32Range(0, recovery.Span+8)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				psn := base.Add(near.Draw(t, "ahead"))
				if model[psn] {
					return // a duplicate is for the caller to see, by Has
				}
				want := uint32(psn.Sub(uint32(base))) < recovery.Span && len(model) < room
				if got := r.Put(packetOf(t, psn)); got != want {
					t.Fatalf("Put(%#x) = %v at base %#x with %d kept", psn, got, base, len(model))
				}
				if want {
					model[psn] = true
				}
			},
			"take": func(t *rapid.T) {
				psn := base.Add(near.Draw(t, "ahead"))
				p := r.Take(psn)
				if (p != nil) != model[psn] {
					t.Fatalf("Take(%#x) = %v", psn, p)
				}
				if p != nil && (p.BTH.PSN != psn || p.Payload[2] != byte(psn)) {
					t.Fatalf("Take(%#x) is %#x with %x", psn, p.BTH.PSN, p.Payload)
				}
				delete(model, psn)
			},
			"advance": func(t *rapid.T) {
				n := rapid.Uint32Range(0, 2*recovery.Span).Draw(t, "by")
				for i := range n {
					delete(model, base.Add(i))
				}
				base = base.Add(n)
				r.Advance(base)
			},
			"": func(t *rapid.T) { sameAsModel(t, &r, pool, model, base, room) },
		})
		if r.Clear(); pool.Free() != room || r.Len() != 0 {
			t.Fatalf("%d of %d are free after Clear", pool.Free(), room)
		}
	})
}

// sameAsModel compares everything that a buffer tells with a set of PSNs.
func sameAsModel(t *rapid.T, r *recovery.Reassembly, pool *recovery.Pool,
	model map[wire.PSN]bool, base wire.PSN, room int,
) {
	if r.Len() != len(model) || pool.Free() != room-len(model) {
		t.Fatalf("%d kept, %d free, model has %d", r.Len(), pool.Free(), len(model))
	}
	var bits [wire.SelectiveBits / 8]byte
	r.Bitmap(base, bits[:])
	first := base.Add(recovery.Span)
	for i := recovery.Span - 1; i >= 0; i-- {
		psn := base.Add(uint32(i))
		if r.Has(psn) != model[psn] {
			t.Fatalf("Has(%#x) = %v", psn, r.Has(psn))
		}
		if model[psn] {
			first = psn
		}
		if bit := i - 1; bit >= 0 && bit < wire.SelectiveBits &&
			bits[bit/8]>>(bit%8)&1 == 1 != model[psn] {
			t.Fatalf("bit %d of the map is wrong: %x", bit, bits)
		}
	}
	if got := r.First(base, base.Add(recovery.Span)); got != first {
		t.Fatalf("First is %#x, not %#x", got, first)
	}
}

// TestPoolIsShared: one buffer cannot take what another has, and has it again after.
func TestPoolIsShared(t *testing.T) {
	pool := recovery.NewPool(2, 4096)
	if pool.Free() != 2 {
		t.Fatalf("%d free before the memory is made", pool.Free())
	}
	pool.Reserve()
	var a, b recovery.Reassembly
	a.Init(pool)
	b.Init(pool)
	if !a.Put(packetOf(t, 1)) || !a.Put(packetOf(t, 2)) || b.Put(packetOf(t, 1)) {
		t.Fatal("the pool gave more, or less, than it has")
	}
	a.Advance(2)
	if !b.Put(packetOf(t, 1)) || b.Take(1) == nil || a.Take(2) == nil || pool.Free() != 2 {
		t.Fatal("what was given back is not there")
	}
}

// TestPoolOfShortPackets: a packet that is longer than the pool's is refused.
func TestPoolOfShortPackets(t *testing.T) {
	pool := recovery.NewPool(1, 8)
	pool.Reserve()
	var r recovery.Reassembly
	r.Init(pool)
	if r.Put(packetOf(t, 0)) || pool.Free() != 1 || r.Len() != 0 {
		t.Fatal("a packet without room was kept")
	}
}
