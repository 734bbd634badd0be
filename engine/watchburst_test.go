package engine_test

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/capture"
	"xroce/engine/sim"
	"xroce/roce"
)

// together has which packets of each direction say that they are of a burst that went on.
type together [3][]bool

func (t *together) Packet(p *capture.Packet) { t[p.Dir] = append(t[p.Dir], p.Together) }

// burstOf returns what moves n messages of 64 bytes that are posted at once.
func burstOf(
	t testing.TB, network *sim.Network, clock *sim.VirtualClock, a, b *side, n int,
) func() {
	receive := &roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(0, 64)}}
	send := &roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, 64)},
	}
	var wcs [64]roce.Completion
	completed := 0
	done := func() bool {
		for _, s := range [2]*side{a, b} {
			k, err := s.cq.Poll(wcs[:])
			if err != nil {
				t.Error(err)
			}
			completed += k
		}
		return completed == 2*n
	}
	machines := []sim.Machine{a.dev, b.dev}
	return func() {
		completed = 0
		for range n {
			if err := errors.Join(b.qp.PostRecv(receive), a.qp.PostSend(send)); err != nil {
				t.Fatal(err)
			}
		}
		if err := network.Run(clock, clock.Now()+roce.Second, done, machines...); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWatchTogether: packets that leave in one turn, or come in one burst, say so, but the first.
func TestWatchTogether(t *testing.T) {
	clock := &sim.VirtualClock{}
	network := newNetwork(t, 1, clock, sim.Faults{})
	devA, devB := simPair(t, network, engine.Options{Clock: clock, Direct: true})
	a, b := newSide(t, devA), newSide(t, devB)
	connect(t, a, b)
	var seen together
	defer devA.Watch(&seen)()
	burst := burstOf(t, network, clock, a, b, 4)
	for turn := range 2 {
		burst()
		out := seen[capture.Outbound]
		if len(out) != 4*(turn+1) {
			t.Fatalf("%d packets have left", len(out))
		}
		// A turn may end before all have left, when it has used up its frames.
		if last := out[4*turn:]; last[0] || !slices.Contains(last, true) {
			t.Errorf("turn %d: together %v", turn, last)
		}
	}
	if in := seen[capture.Inbound]; len(in) == 0 || in[0] {
		t.Errorf("of those that came: %v", in)
	}
}

// BenchmarkWatched is what a capture costs a short SEND, but for the writing of the file, at its
// sender and at its receiver: the wire is simulated, the lowest percent of the times counts, with
// and without in turn.
func BenchmarkWatched(b *testing.B) {
	for _, name := range []string{"sender", "receiver"} {
		b.Run(name, func(b *testing.B) { benchmarkWatched(b, name == "receiver") })
	}
}

func benchmarkWatched(b *testing.B, receiver bool) {
	const at = 8 // messages at once
	var bursts [2]func()
	for i := range bursts {
		clock := &sim.VirtualClock{}
		network := newNetwork(b, 1, clock, sim.Faults{})
		devA, devB := simPair(b, network, engine.Options{Clock: clock, Direct: true})
		sideA, sideB := newSide(b, devA), newSide(b, devB)
		connect(b, sideA, sideB)
		if i == 1 {
			w := capture.New(io.Discard, capture.Config{Interface: "a"})
			defer w.Close()
			watched := devA
			if receiver {
				watched = devB
			}
			defer watched.Watch(w)()
		}
		bursts[i] = burstOf(b, network, clock, sideA, sideB, at)
	}
	var took [2][]time.Duration
	for b.Loop() {
		for i, burst := range bursts {
			begin := time.Now()
			burst()
			took[i] = append(took[i], time.Since(begin))
		}
	}
	var low [2]float64
	for i, list := range took {
		slices.Sort(list)
		low[i] = float64(list[len(list)/100]) / at
	}
	b.ReportMetric(low[0], "ns/unwatched")
	b.ReportMetric(low[1], "ns/watched")
	b.ReportMetric(low[1]-low[0], "ns/difference")
}
