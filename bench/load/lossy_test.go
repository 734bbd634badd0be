package load

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"xroce/bench/worker"
	"xroce/xsk"
)

// A sentLink notes which frames were transmitted and which returned.
type sentLink struct {
	xsk.Link
	sent, returned []uint64
}

func (l *sentLink) Info() xsk.Info { return xsk.Info{TxFrames: 64} }

func (l *sentLink) Transmit(frames []xsk.TxFrame) {
	for _, f := range frames {
		l.sent = append(l.sent, f.Ref)
	}
}

func (l *sentLink) Return(frames []xsk.TxFrame) {
	for _, f := range frames {
		l.returned = append(l.returned, f.Ref)
	}
}

// transmit sends count frames in bursts through a lossy link.
func transmit(l *lossyLink, count, burst int) {
	for first := 0; first < count; first += burst {
		frames := make([]xsk.TxFrame, min(burst, count-first))
		for i := range frames {
			frames[i].Ref = uint64(first + i)
		}
		l.Transmit(frames)
	}
}

// Each frame is sent or returned, once, those sent in their order, and the same
// seed drops the same frames whatever the bursts are.
func TestLossyLinkKeepsTheBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		ppm := rapid.IntRange(0, 1000000).Draw(t, "loss")
		count := rapid.IntRange(0, 300).Draw(t, "frames")
		var runs [2]sentLink
		for i := range runs {
			l := newLossyLink(&runs[i], seed, ppm)
			transmit(l, count, rapid.IntRange(1, 64).Draw(t, "burst"))
			if int(l.dropped.Load()) != len(runs[i].returned) {
				t.Fatalf("%d counted, %d returned", l.dropped.Load(), len(runs[i].returned))
			}
		}
		all := slices.Concat(runs[0].sent, runs[0].returned)
		slices.Sort(all)
		for i, ref := range all {
			if ref != uint64(i) {
				t.Fatalf("frame %d is missing or doubled", i)
			}
		}
		if len(all) != count || !slices.IsSorted(runs[0].sent) {
			t.Fatalf("%d of %d frames, sent in the order %v", len(all), count, runs[0].sent)
		}
		if !slices.Equal(runs[0].sent, runs[1].sent) {
			t.Fatal("the same seed dropped other frames")
		}
	})
}

func TestLossyLinkLosesAsOften(t *testing.T) {
	const count = 100000
	for _, ppm := range []int{0, 1000, 10000, 50000, 500000, 1000000} {
		l := newLossyLink(&sentLink{}, 1, ppm)
		transmit(l, count, 64)
		want := float64(ppm) / 1e6 * count
		// Five standard deviations.
		if off := math.Abs(float64(l.dropped.Load()) - want); off > 5*math.Sqrt(want)+0.5 {
			t.Errorf("%d ppm: dropped %d of %d, want about %v", ppm, l.dropped.Load(), count, want)
		}
	}
}

func TestLossyLinkDoesNotAllocate(t *testing.T) {
	quiet := &sentLink{sent: make([]uint64, 0, 1<<20), returned: make([]uint64, 0, 1<<20)}
	l := newLossyLink(quiet, 1, 100000)
	frames := make([]xsk.TxFrame, 64)
	if n := testing.AllocsPerRun(100, func() { l.Transmit(frames) }); n != 0 {
		t.Errorf("%v allocations a burst", n)
	}
}

func TestStageHost(t *testing.T) {
	o := worker.Options{
		Interface: "lo", Local: "192.0.2.1", Remote: "192.0.2.2",
		Header: Header(64, macB, macA, ipA, ipB),
	}
	h, err := newStageHost(o)
	if err != nil {
		t.Fatal(err)
	}
	mac, err := h.Resolve(t.Context(), h.port.Addrs[0], h.peer)
	if err != nil || mac != macB {
		t.Errorf("Resolve: % x, %v, want % x", mac, err, macB)
	}
	if mac, err := h.Resolve(t.Context(), h.peer, h.port.Addrs[0]); err == nil {
		t.Errorf("a stranger has the address % x", mac)
	}
	for _, bad := range []worker.Options{
		{Interface: "no-such-interface", Local: o.Local, Remote: o.Remote},
		{Interface: "lo", Local: "nowhere", Remote: o.Remote},
		{Interface: "lo", Local: o.Local, Remote: "nowhere"},
	} {
		if _, err := newStageHost(bad); err == nil {
			t.Errorf("a host of %+v", bad)
		}
	}
}
