package encap

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestAnyTemplate: whatever the room and the fields of a template, a datagram that is sent
// comes back as it was, in packets that are no longer than the room, and of which none is more
// than told.
func TestAnyTemplate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Format(rapid.IntRange(0, numFormats-1).Draw(t, "format"))
		spec := f.Spec()
		tp := Template{
			Format: f, Room: rapid.IntRange(60, min(spec.Room, 20_000)).Draw(t, "room"),
			VL: rapid.Uint8Max(15).Draw(t, "VL"), SL: rapid.Uint8Max(15).Draw(t, "SL"),
			DLID: rapid.Uint16().Draw(t, "DLID"), SLID: rapid.Uint16().Draw(t, "SLID"),
			TClass:    rapid.Byte().Draw(t, "TClass"),
			FlowLabel: rapid.Uint32Max(1<<20-1).Draw(t, "flow label"),
			HopLimit:  rapid.Byte().Draw(t, "hop limit"),
			Switch:    rapid.Uint16().Draw(t, "switch"),
			Checks:    Checks(rapid.Uint8Max(15).Draw(t, "checks")),
		}
		if tp.Validate() != nil {
			t.Skip("no room")
		}
		k := spec.Codes[rapid.IntRange(0, len(spec.Codes)-1).Draw(t, "kind")].Kind
		n := rapid.IntRange(k.MinLen(), min(tp.Largest(k), 1<<16-1)).Draw(t, "length")
		seed := rapid.Uint64().Draw(t, "bytes")
		d := datagram(k, n, rand.New(rand.NewPCG(seed, 1)))
		cut, reason := tp.Cut(k, d, rapid.Uint16().Draw(t, "ID"))
		if reason != OK {
			t.Fatal(reason)
		}
		parts := cut
		r, err := NewReassembler(ReassemblerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		frame, head, tail := make([]byte, tp.Room), make([]byte, 64), make([]byte, MaxTail)
		for left := cut.Packets(); left > 0; left-- {
			if left != cut.Packets() {
				t.Fatalf("%d packets are left, want %d", cut.Packets(), left)
			}
			b := frame[:cut.Next(frame)]
			if f > RawGRH {
				h, piece, e := parts.NextParts(head, tail)
				if !bytes.Equal(b, bytes.Join([][]byte{head[:h], piece, tail[:e]}, nil)) {
					t.Fatal("in parts it is another packet")
				}
			}
			var p Packet
			if reason := decode(&p, f, b); reason != OK {
				t.Fatal(reason)
			}
			if p.LRH.DLID != tp.DLID && f <= RawGRH || p.Switch != tp.Switch && f == VNIC ||
				p.GRH.FlowLabel != tp.FlowLabel && f == RawGRH ||
				p.Checks != tp.Checks && f == EoIB {
				t.Fatalf("%+v is not of %+v", p, tp)
			}
			if got = p.Datagram; !p.Segment.Whole() {
				if got, reason = r.Add(1, 1, &p); reason != OK {
					t.Fatal(reason)
				}
			}
		}
		if !bytes.Equal(got, d) || cut.Next(frame) != 0 {
			t.Fatalf("%d bytes came back of %d", len(got), len(d))
		}
	})
}

// TestPartsOfNative: the VCRC needs all bytes.
func TestPartsOfNative(t *testing.T) {
	cut, _ := template(Raw).Cut(Ethernet, make([]byte, 60), 1)
	defer func() {
		if recover() == nil {
			t.Error("a native packet in parts")
		}
	}()
	cut.NextParts(make([]byte, 64), make([]byte, MaxTail))
}
