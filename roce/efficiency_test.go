package roce_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// A stream is one operation from the first end to the second, posted as fast as
// it completes, over a wire that takes its time for each frame.
type stream struct {
	p      *pair
	wr     roce.SendWR
	size   int // of a message in bytes
	depth  int // messages posted at a time
	posted int
	done   int
}

// newStream returns a stream of messages of n bytes.
func newStream(t *testing.T, op roce.Opcode, n int, o options) *stream {
	t.Helper()
	o.Timeout, o.RetryCnt, o.MaxRd, o.CQDepth, o.MTU = 10, 7, 64, 1<<12, or(o.MTU, wire.MTU256)
	o.Memory = or(o.Memory, 1<<20)
	// Enough to fill the window twice.
	depth := min(512, max(8, 2*256*o.MTU.Bytes()/n))
	o.Depth = depth
	st := &stream{p: newRCPair(t, o), size: n, depth: depth}
	from, to := st.p.ends[0], st.p.ends[1]
	st.wr = roce.SendWR{
		Opcode: op, SGList: from.sge(0, n), RemoteAddr: to.region.Addr(), RKey: to.region.RKey(),
	}
	return st
}

// run moves so many messages.
func (st *stream) run(messages int) {
	from, to := st.p.ends[0], st.p.ends[1]
	for st.done < messages {
		for st.posted < messages && st.posted-st.done < st.depth {
			if consumesRecv(st.wr.Opcode) {
				must(st.p.tb, to.qp.PostRecv(&roce.RecvWR{SGList: to.sge(0, st.size)}))
			}
			must(st.p.tb, from.qp.PostSend(&st.wr))
			st.posted++
		}
		if !st.p.step() {
			st.p.tb.Fatalf("stuck at message %d: %s; %s", st.done, from.qp.Snapshot(),
				to.qp.Snapshot())
		}
		for _, wc := range drain(st.p.tb, from.send) {
			if wc.Status != roce.StatusSuccess {
				st.p.tb.Fatalf("%+v", wc)
			}
			st.done++
		}
		drain(st.p.tb, to.recv)
	}
	st.p.run()
	for i, e := range st.p.ends {
		if e.pool.Free() != st.p.o.Pool {
			st.p.tb.Errorf("end %d: %d packets still kept", i, st.p.o.Pool-e.pool.Free())
		}
	}
}

// TestOneLossOneRepeat: of a full window one packet is lost, and exactly that one
// goes again: the last one too, which is its own probe.
func TestOneLossOneRepeat(t *testing.T) {
	const packets = 256
	for _, op := range []roce.Opcode{roce.OpSend, roce.OpWrite} {
		for lost := range packets {
			st := newStream(t, op, packets/8*256, options{Ext: roce.ExtSelectiveRepeat})
			st.p.fault = func(from, nth int, _ []byte) fault {
				return fault{Drop: from == 0 && nth == lost}
			}
			st.run(8)
			c := st.p.ends[0].count
			if c[counter.Retransmits] != 1 || c[counter.LocalAckTimeout] != 0 {
				t.Fatalf("%s, packet %d lost: %d sent again, %d timeouts", op, lost,
					c[counter.Retransmits], c[counter.LocalAckTimeout])
			}
		}
	}
}

// TestOneLossOneRead: of the responses of READs in flight one is lost: one request
// asks for it, and nothing else comes twice.
func TestOneLossOneRead(t *testing.T) {
	for lost := range 256 {
		st := newStream(t, roce.OpRead, 64*256, options{Ext: roce.ExtSelectiveRepeat})
		st.p.fault = func(from, nth int, _ []byte) fault {
			return fault{Drop: from == 1 && nth == lost}
		}
		st.run(4)
		c := st.p.ends[0].count
		if c[counter.Retransmits] != 1 || st.p.sent[1] != 257 ||
			c[counter.LocalAckTimeout] != 0 {
			t.Fatalf("response %d lost: %d requests again, %d responses, %d timeouts", lost,
				c[counter.Retransmits], st.p.sent[1], c[counter.LocalAckTimeout])
		}
	}
}

// TestLossEfficiency: at 1 % loss either way what is sent again is little more than
// what was lost, and the local ACK timer never needed.
func TestLossEfficiency(t *testing.T) {
	for _, tt := range []struct {
		op       roce.Opcode
		n        int
		messages int
	}{
		{roce.OpWrite, 64 << 10, 400},
		{roce.OpSend, 64 << 10, 400},
		{roce.OpWrite, 1 << 10, 20000},
		{roce.OpSend, 100, 20000},
		{roce.OpRead, 64 << 10, 400},
		{roce.OpRead, 1 << 10, 20000},
	} {
		t.Run(fmt.Sprintf("%s/%d", tt.op, tt.n), func(t *testing.T) {
			st := newStream(t, tt.op, tt.n, options{
				Ext: roce.ExtSelectiveRepeat, MTU: wire.MTU1024,
			})
			r := rand.New(rand.NewPCG(1, 2))
			var losses [2]int
			st.p.fault = func(from, _ int, _ []byte) (f fault) {
				if f.Drop = r.IntN(100) == 0; f.Drop {
					losses[from]++
				}
				return f
			}
			st.run(tt.messages)
			c, lost := st.p.ends[0].count, losses[0]
			if tt.op == roce.OpRead {
				lost += losses[1] // each of those is asked for, too
			}
			again, timeouts := c[counter.Retransmits], c[counter.LocalAckTimeout]
			t.Logf("sent %d, lost %v, again %d, timeouts %d", st.p.sent, losses, again, timeouts)
			if 10*int(again) > 13*lost || timeouts > 0 || lost < 100 {
				t.Errorf("%d losses, %d sent again, %d timeouts", lost, again, timeouts)
			}
		})
	}
}

// TestReorderEfficiency: on a wire on which packets overtake up to 31 others the
// reorder window hides it all: no NAK, nothing sent again, nothing twice.
func TestReorderEfficiency(t *testing.T) {
	for _, op := range []roce.Opcode{
		roce.OpWrite, roce.OpSend, roce.OpRead, roce.OpFetchAdd, roce.OpFlush, roce.OpAtomicWrite,
	} {
		for _, ext := range []roce.Extensions{
			roce.ExtReorderWindow, roce.ExtReorderWindow | roce.ExtSelectiveRepeat,
		} {
			t.Run(fmt.Sprintf("%s/%s", op, ext), func(t *testing.T) {
				n := 5000
				switch op {
				case roce.OpFetchAdd, roce.OpAtomicWrite:
					n = 8
				}
				st := newStream(t, op, n, options{
					Ext: ext, MTU: wire.MTU1024, Rights: atomicRights,
				})
				if op == roce.OpFlush {
					st.wr.SGList, st.wr.Flush = nil, wire.FlushGlobal
				}
				reorder(st.p, 32)
				st.run(500)
				for i, e := range st.p.ends {
					for _, id := range []counter.ID{
						counter.Retransmits, counter.SentSeqNAK, counter.ImpliedNAK,
						counter.LocalAckTimeout, counter.DuplicateRequest, counter.OutOfSequence,
					} {
						if e.count[id] != 0 {
							t.Errorf("end %d: %s is %d", i, id, e.count[id])
						}
					}
				}
				held := func(end int) uint64 { return st.p.ends[end].count[counter.HeldEarly] }
				if held(0)+held(1) == 0 {
					t.Error("nothing was reordered")
				}
			})
		}
	}
}

// reorder makes a wire send a packet every 100 ns each way, and lets each be late by
// less than so many places.
func reorder(p *pair, places int) {
	r := rand.New(rand.NewPCG(3, 4))
	const gap = 100 * roce.Nanosecond
	var free [2]roce.Time
	p.fault = func(from, _ int, _ []byte) fault {
		free[from] = max(free[from]+gap, p.now)
		return fault{Delay: free[from] - p.now + roce.Time(r.IntN(places))*gap}
	}
}

// TestLossAtSpeed: at 1 % loss, 64 KiB after 64 KiB at some 4.6 Gb/s to a peer that answers after
// 160 µs, the window of 256 packets is nearly used up by what waits for one that is missing. What
// is left is enough when a gap is told at once, and not when others may overtake first.
func TestLossAtSpeed(t *testing.T) {
	speed := func(ext roce.Extensions, losses bool) roce.Time {
		st := newStream(t, roce.OpSend, 64<<10, options{
			Ext: ext, MTU: wire.MTU1024, PathBytes: 1408, Pool: 1024,
		})
		st.p.gap, st.p.delay = 2400, 80*roce.Microsecond
		r := rand.New(rand.NewPCG(1, 2))
		st.p.fault = func(int, int, []byte) fault {
			return fault{Drop: losses && r.IntN(100) == 0}
		}
		st.run(1000)
		return st.p.now
	}
	for ext, least := range map[roce.Extensions]float64{
		roce.ExtSelectiveRepeat:                         0.9,
		roce.ExtSelectiveRepeat | roce.ExtReorderWindow: 0,
	} {
		ratio := float64(speed(ext, false)) / float64(speed(ext, true))
		t.Logf("%s: %.3f of lossless", ext, ratio)
		if ratio < least || least == 0 && ratio >= 0.9 {
			t.Errorf("%s: %.3f of lossless", ext, ratio)
		}
	}
}
