package perf

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xroce/engine"
	"xroce/engine/oob/perftest"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestSlotsStayInTheirPart: whatever the peer asks for, no message leaves the part
// of its QP, and messages do not overlap.
func TestSlotsStayInTheirPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{
			QPs:  rapid.IntRange(1, 5).Draw(t, "qps"),
			Size: rapid.IntRange(1, 20000).Draw(t, "largest"),
			Type: rapid.SampledFrom([]roce.QPType{roce.TypeRC, roce.TypeUD}).Draw(t, "type"),
		}
		l, err := newLayout(&c, perftest.System{
			Cycle:     rapid.IntRange(4096, 1<<17).Draw(t, "cycle"),
			CacheLine: 1 << rapid.IntRange(0, 10).Draw(t, "line"),
		})
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(1, c.Size).Draw(t, "size") + c.header()
		count, stride := l.slots(n)
		if count < 1 || count > 1 && stride < uint64(n) ||
			(count-1)*stride+uint64(n) > uint64(l.part) {
			t.Errorf("%+v: %d slots of %d bytes, %d apart", l, count, n, stride)
		}
		if l.in(c.QPs-1)+l.part > l.size() || l.out(c.QPs-1)+l.part > l.in(0) {
			t.Errorf("%+v: parts overlap", l)
		}
	})
}

// TestPeerMakesLittleMemory: whatever a peer may say of its machine, it makes the memory
// of a test larger by no more than the bound, and a refusal names both.
func TestPeerMakesLittleMemory(t *testing.T) {
	for _, qps := range []int{1, 16, 1000, 16384} {
		for _, s := range []perftest.System{
			{Cycle: 4096, CacheLine: 64},
			{Cycle: 1 << 16, CacheLine: 64},
			{Cycle: 1 << 16, CacheLine: 4096},
			{Cycle: 1 << 20, CacheLine: 4096},
		} {
			for _, size := range []int{1, 5000, 1 << 20} {
				c := Config{QPs: qps, Size: size}
				l, err := newLayout(&c, s)
				more := l.size() - layoutOf(&c, ownSystem).size()
				if (err != nil) != (more > 64<<20) {
					t.Errorf("%d QPs, %+v: %d bytes more, %v", qps, s, more, err)
				}
				if err != nil && (!errors.Is(err, roce.ErrInvalid) ||
					!strings.Contains(err.Error(), fmt.Sprint(more)) ||
					!strings.Contains(err.Error(), "67108864 are the most")) {
					t.Errorf("%v", err)
				}
				if qps == 1 && err != nil {
					t.Errorf("one QP, %+v: %v", s, err)
				}
			}
		}
	}
}

// TestStrangerAllocatesNothing: a client that asks for a cycle of 1 GiB is refused
// before memory is made.
func TestStrangerAllocatesNothing(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := tcpPair(t)
	dev := device(t, network, 1, engine.Options{Direct: true})
	o := Options{Config: brief(Test{Verb: Send}), Tell: &Record{}}
	o.QPs = 16
	// Version 6.06, and a cycle of 1 GiB.
	said := "6.06" + strings.Repeat("\x00", 12) + "@\x00\x00\x00"
	if _, err := theirs.Write([]byte(said)); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = Run(t.Context(), dev, NewSocket(dev, ours, false), o)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, perftest.ErrMessage) {
		t.Errorf("%v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// TestStrangerAsksTooMuch: a peer whose pages are too large for so many queue pairs is
// refused, by a server that lives on to say so.
func TestStrangerAsksTooMuch(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := tcpPair(t)
	dev := device(t, network, 1, engine.Options{Direct: true})
	o := Options{Config: brief(Test{Verb: Send}), Tell: &Record{}}
	o.QPs, o.Size = 1000, 1
	// Version 6.06, a cycle of 1 MiB, a cache line of 64 bytes, an MTU of 1024 bytes.
	said := "6.06" + strings.Repeat("\x00", 12) + "\x00\x10\x00\x00\x00\x00\x00@3\x00"
	if _, err := theirs.Write([]byte(said)); err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), dev, NewSocket(dev, ours, false), o)
	if !errors.Is(err, roce.ErrInvalid) ||
		!strings.Contains(err.Error(), "buffer cycle of 1048576") {
		t.Errorf("%v", err)
	}
}

func TestTooMuchMemory(t *testing.T) {
	c := Config{QPs: 16384, Size: 1 << 30}
	if _, err := newLayout(&c, perftest.System{Cycle: 4096, CacheLine: 64}); !errors.Is(err,
		roce.ErrInvalid) {
		t.Errorf("%v", err)
	}
}
