package demo

import (
	"net/netip"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/xsk"
)

// TestLossyLink sends frames one by one: of 2000 a few hundred are lost, the same
// ones for the same seed, and no transmit frame goes missing.
func TestLossyLink(t *testing.T) {
	const frames, share = 2000, 0.25
	run := func(seed uint64) (arrived []byte) {
		network, err := sim.NewNetwork(1, machineClock{time.Now()}, sim.Faults{})
		if err != nil {
			t.Fatal(err)
		}
		var ports [2]*sim.Port
		for i := range ports {
			ports[i], err = network.NewPort(sim.PortConfig{
				Name: "p", MAC: [6]byte{2, 0, 0, 0, 0, byte(i)}, MTU: 1500,
				Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer ports[i].Close()
		}
		l := newLossyLink(ports[0], share, seed)
		for n := range frames {
			var out [1]xsk.TxFrame
			if l.Reserve(out[:]) != 1 {
				t.Fatalf("no frame left after %d", n)
			}
			copy(out[0].Data, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0x88, 0xb5, byte(n)})
			out[0].Len = 60
			l.Transmit(out[:])
			if err := l.Flush(); err != nil {
				t.Fatal(err)
			}
			var in [1]xsk.RxFrame
			if ports[1].Receive(in[:]) == 1 {
				arrived = append(arrived, in[0].Head[14])
				ports[1].Release(in[:])
			}
		}
		if l.frames.Load() != frames || int(l.lost.Load()) != frames-len(arrived) {
			t.Errorf("counts %d frames, %d lost; %d arrived", l.frames.Load(), l.lost.Load(),
				len(arrived))
		}
		return arrived
	}
	first := run(1)
	// Six standard deviations of a binomial distribution.
	if lost := frames - len(first); lost < 380 || lost > 620 {
		t.Errorf("%d of %d lost", lost, frames)
	}
	if string(run(1)) != string(first) {
		t.Error("the same seed loses other frames")
	}
	if string(run(2)) == string(first) {
		t.Error("another seed loses the same frames")
	}
}
