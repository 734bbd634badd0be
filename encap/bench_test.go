package encap

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestAllocs: nothing on the way of a packet allocates.
func TestAllocs(t *testing.T) {
	r, err := NewReassembler(ReassemblerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var p Packet
	id := uint16(0)
	for _, spec := range Formats() {
		tp := template(spec.Format)
		frame := make([]byte, tp.Room)
		for _, code := range spec.Codes {
			d := datagram(code.Kind, min(1500, max(spec.Whole, spec.Connected)), random)
			nested := d
			if code.Kind == Ethernet {
				nested = onEthernet(EtherTypeNative, 0, packetOf(t, Raw, Ethernet, 1500))
				tp.Room = min(tp.Room, 1024)
			}
			allocs := testing.AllocsPerRun(100, func() {
				id++
				c, reason := tp.Cut(code.Kind, nested, id)
				for reason == OK && c.Packets() > 0 {
					if reason = decode(&p, spec.Format, frame[:c.Next(frame)]); reason == OK &&
						!p.Segment.Whole() {
						_, reason = r.Add(1, 1, &p)
					}
				}
				if reason != OK && reason != TooLong {
					t.Fatal(reason)
				}
			})
			if allocs != 0 {
				t.Errorf("%s in %s: %v allocations", code.Kind, spec.Name, allocs)
			}
		}
	}
}

// BenchmarkRoundTrip is what a datagram costs both ends, without the wire.
func BenchmarkRoundTrip(b *testing.B) {
	for _, spec := range Formats() {
		k := spec.Codes[len(spec.Codes)-1].Kind
		if k == RARP {
			k = Ethernet
			if !spec.Carries(k) {
				k = IPv4
			}
		}
		for _, n := range []int{64, 1500} {
			b.Run(fmt.Sprintf("%s-%s/%d", spec.Name, k, n), func(b *testing.B) {
				tp := template(spec.Format)
				frame := make([]byte, tp.Room)
				d := datagram(k, n, rand.New(rand.NewPCG(1, 2)))
				var p Packet
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					size, r := tp.Put(frame, k, d)
					if r != OK || decode(&p, spec.Format, frame[:size]) != OK {
						b.Fatal("not OK")
					}
				}
			})
		}
	}
}
