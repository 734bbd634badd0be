package roce_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// A lossRun is what a stream over a lossy wire took.
type lossRun struct {
	time     roce.Time
	lost     int
	again    uint64 // request packets
	timeouts uint64
}

// A lossWire takes 20 us one way and a frame every microsecond, and loses some in a
// million. Frames that it cannot take yet wait at their sender, or in a queue before
// the wire, in which a window finds room.
type lossWire struct {
	ppm    int
	queues bool
}

// lose moves messages over a lossy wire, with a local ACK timeout of 4 ms.
func (w lossWire) lose(t *testing.T, op roce.Opcode, n, messages int, seed uint64) lossRun {
	t.Helper()
	const gap = roce.Microsecond
	st := newStream(t, op, n, options{Ext: roce.ExtSelectiveRepeat, MTU: wire.MTU1024})
	if st.p.delay = 20 * roce.Microsecond; !w.queues {
		st.p.gap = gap
	}
	r := rand.New(rand.NewPCG(seed, 7))
	run := lossRun{}
	var free [2]roce.Time
	st.p.fault = func(from, _ int, _ []byte) (f fault) {
		f.Drop = r.IntN(1e6) < w.ppm
		run.lost += bit(f.Drop)
		if w.queues {
			free[from] = max(free[from]+gap, st.p.now)
			f.Delay = free[from] - st.p.now
		}
		return f
	}
	st.run(messages)
	c := st.p.ends[0].count
	run.time, run.again = st.p.now, c[counter.Retransmits]
	run.timeouts = c[counter.LocalAckTimeout]
	return run
}

// TestLossGoodput: at 1 % loss either way a stream takes hardly longer than without,
// because no loss waits for the local ACK timer: what is lost twice, and answers
// that are lost, are noticed by what is sent later, or else by a probe.
func TestLossGoodput(t *testing.T) {
	for _, tt := range []struct {
		op       roce.Opcode
		n        int
		messages int
		ppm      int
		paced    float64 // at least, of the goodput without loss, when the sender waits
		queued   float64 // when the wire has a queue
		timeouts uint64  // at most
	}{
		{roce.OpWrite, 64 << 10, 400, 1_000, 0.98, 0.95, 0},
		{roce.OpWrite, 64 << 10, 400, 10_000, 0.95, 0.9, 0},
		{roce.OpWrite, 64 << 10, 400, 50_000, 0.9, 0.75, 0},
		{roce.OpSend, 64 << 10, 400, 10_000, 0.95, 0.85, 0},
		{roce.OpSend, 100, 25_000, 10_000, 0.95, 0.85, 0},
		{roce.OpRead, 64 << 10, 400, 10_000, 0.9, 0.75, 0},
		// A READ asks for one hole at a time, in both directions at that loss.
		{roce.OpRead, 64 << 10, 400, 50_000, 0.35, 0.3, 2},
		{roce.OpRead, 1 << 10, 25_000, 50_000, 0.2, 0.2, 2},
	} {
		for _, queues := range []bool{false, true} {
			name := fmt.Sprintf("%s/%d/%d/%t", tt.op, tt.n, tt.ppm, queues)
			t.Run(name, func(t *testing.T) {
				atLeast := tt.paced
				if queues {
					atLeast = tt.queued
				}
				clean := lossWire{0, queues}.lose(t, tt.op, tt.n, tt.messages, 1)
				for seed := range uint64(2) {
					got := lossWire{tt.ppm, queues}.lose(t, tt.op, tt.n, tt.messages, seed)
					share := float64(clean.time) / float64(got.time)
					t.Logf("%.3f of lossless, %d lost, %d again, %d timeouts", share, got.lost,
						got.again, got.timeouts)
					if share < atLeast || got.timeouts > tt.timeouts {
						t.Errorf("seed %d: %.3f of the goodput without loss, want %.2f",
							seed, share, atLeast)
					}
				}
			})
		}
	}
}

// TestLossBetweenPaths: where packets overtake up to 31 others and 1 % is lost, both
// extensions together send little more again than what was lost, and wait for no
// timer: that something sent later has come does not say that a repetition was lost.
func TestLossBetweenPaths(t *testing.T) {
	for _, op := range []roce.Opcode{roce.OpWrite, roce.OpSend} {
		st := newStream(t, op, 64<<10, options{
			Ext: roce.ExtSelectiveRepeat | roce.ExtReorderWindow, MTU: wire.MTU1024,
		})
		reorder(st.p, 32)
		r, lost, late := rand.New(rand.NewPCG(5, 6)), 0, st.p.fault
		st.p.fault = func(from, nth int, frame []byte) fault {
			f := late(from, nth, frame)
			f.Drop = r.IntN(100) == 0
			lost += bit(f.Drop && from == 0)
			return f
		}
		st.run(400)
		c := st.p.ends[0].count
		again, timeouts := c[counter.Retransmits], c[counter.LocalAckTimeout]
		t.Logf("%s: %d lost, %d again, %d timeouts, %d us", op, lost, again, timeouts,
			st.p.now/roce.Microsecond)
		if 10*int(again) > 13*lost || timeouts > 0 || lost < 100 {
			t.Errorf("%s: %d losses, %d sent again, %d timeouts", op, lost, again, timeouts)
		}
	}
}
