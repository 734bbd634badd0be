package trial

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk"
)

// A mutant is something wrong that the engine might do, done by the test.
type mutant struct {
	name   string
	want   []Invariant // any of these must find it
	tamper func(m *mutation) tamper
}

// A mutation is a mutant in one run: it strikes once.
type mutation struct{ struck bool }

// strike reports whether it is time: once, when the condition holds.
func (m *mutation) strike(when bool) bool {
	if m.struck || !when {
		return false
	}
	m.struck = true
	return true
}

// lost is by what it can be found that a completion is missing.
var lost = []Invariant{Completion, Delivery, Liveness}

// live returns the endpoints of connections that work.
func live(w *world) (list []*endpoint) {
	for _, c := range w.conns {
		for _, e := range c.ends {
			if c.open && !c.breaking && !e.dead && !e.peer.dead {
				list = append(list, e)
			}
		}
	}
	return list
}

// completions makes a tamper that changes a list of completions.
func completions(
	m *mutation, when func(wcs []roce.Completion) bool,
	change func(wcs []roce.Completion) []roce.Completion,
) tamper {
	return tamper{completions: func(_ *world, wcs []roce.Completion) []roce.Completion {
		if m.strike(when(wcs)) {
			return change(slices.Clone(wcs))
		}
		return wcs
	}}
}

// memory makes a tamper that changes memory, once it finds where.
func memory(m *mutation, change func(e *endpoint) bool) tamper {
	return tamper{after: func(w *world) {
		for _, e := range live(w) {
			if !m.struck && change(e) {
				m.struck = true
			}
		}
	}}
}

func some(wcs []roce.Completion) bool { return len(wcs) > 0 }

// successOf reports whether the first completion is a success of these.
func successOf(ops ...roce.WCOpcode) func([]roce.Completion) bool {
	return func(wcs []roce.Completion) bool {
		return len(wcs) > 0 && wcs[0].Status == roce.StatusSuccess &&
			slices.Contains(ops, wcs[0].Opcode)
	}
}

// sameQueue reports whether the first two completions are of one work queue.
func sameQueue(wcs []roce.Completion) bool {
	return len(wcs) > 1 && wcs[0].WRID&receiveID == wcs[1].WRID&receiveID &&
		wcs[0].Status == roce.StatusSuccess && wcs[1].Status == roce.StatusSuccess
}

var mutants = []mutant{
	{"a completion is lost", []Invariant{Completion}, func(m *mutation) tamper {
		return completions(m, successOf(roce.WCSend, roce.WCWrite, roce.WCRead),
			func(wcs []roce.Completion) []roce.Completion { return wcs[1:] })
	}},
	{"a receive completion is lost", lost, func(m *mutation) tamper {
		return completions(m, successOf(roce.WCRecv, roce.WCRecvRDMAWithImm),
			func(wcs []roce.Completion) []roce.Completion { return wcs[1:] })
	}},
	{"a completion comes twice", []Invariant{Completion}, func(m *mutation) tamper {
		return completions(m, some, func(wcs []roce.Completion) []roce.Completion {
			return append(wcs[:1:1], wcs...)
		})
	}},
	{"two completions swap", []Invariant{Completion, Delivery}, func(m *mutation) tamper {
		return completions(m, sameQueue, func(wcs []roce.Completion) []roce.Completion {
			wcs[0], wcs[1] = wcs[1], wcs[0]
			return wcs
		})
	}},
	{
		"an error is reported as success",
		[]Invariant{Status, Completion, Memory, Read, Delivery},
		func(m *mutation) tamper {
			return completions(m, func(wcs []roce.Completion) bool {
				return some(wcs) && wcs[0].Status == roce.StatusRetryExcErr
			}, func(wcs []roce.Completion) []roce.Completion {
				wcs[0].Status = roce.StatusSuccess
				return wcs
			})
		},
	},
	{"a success is reported as error", []Invariant{Status}, func(m *mutation) tamper {
		return completions(m, successOf(roce.WCSend, roce.WCWrite, roce.WCRead),
			func(wcs []roce.Completion) []roce.Completion {
				wcs[0].Status = roce.StatusRetryExcErr
				return wcs
			})
	}},
	{"a flush has the wrong status", []Invariant{Status}, func(m *mutation) tamper {
		flushed := func(wcs []roce.Completion) bool {
			return len(wcs) > 1 && wcs[0].WRID&receiveID == 0 && wcs[1].WRID&receiveID == 0 &&
				wcs[0].QPN == wcs[1].QPN && wcs[1].Status == roce.StatusWRFlushErr
		}
		return completions(m, flushed, func(wcs []roce.Completion) []roce.Completion {
			wcs[1].Status = roce.StatusRemOpErr
			return wcs
		})
	}},
	{"a length is wrong", []Invariant{Delivery}, func(m *mutation) tamper {
		return completions(m, successOf(roce.WCRecv),
			func(wcs []roce.Completion) []roce.Completion {
				wcs[0].ByteLen++
				return wcs
			})
	}},
	{"an immediate is wrong", []Invariant{Delivery}, func(m *mutation) tamper {
		return completions(m, func(wcs []roce.Completion) bool {
			return some(wcs) && wcs[0].Flags&roce.WCWithImm != 0
		}, func(wcs []roce.Completion) []roce.Completion {
			wcs[0].Imm ^= 1
			return wcs
		})
	}},
	{"a message is another's", []Invariant{Memory, Delivery}, func(m *mutation) tamper {
		return tamper{completions: func(w *world, wcs []roce.Completion) []roce.Completion {
			for _, e := range live(w) {
				if len(e.recvs) > 0 && len(e.expect) > 0 && !e.expect[0].remote &&
					e.expect[0].size >= 8 && len(wcs) > 0 && wcs[0].WRID == e.recvs[0].id &&
					wcs[0].QPN == e.info.QPN && wcs[0].Status == roce.StatusSuccess &&
					m.strike(true) {
					r := e.recvs[0]
					fill(r.arena.mem[r.slot.off+r.at:][:e.expect[0].size], e.expect[0].key+1)
				}
			}
			return wcs
		}}
	}},
	{"a byte of idle memory changes", []Invariant{Memory, Read}, func(m *mutation) tamper {
		return memory(m, func(e *endpoint) bool {
			s := e.arena.pick(poolWritable, 0)
			if s == nil {
				return false
			}
			e.arena.mem[s.off+3] ^= 4
			return true
		})
	}},
	{"a byte behind a receive changes", []Invariant{Memory}, func(m *mutation) tamper {
		return memory(m, func(e *endpoint) bool {
			s := e.arena.pools[poolReceive][0]
			e.arena.mem[s.off+s.n] ^= 1
			return true
		})
	}},
	{"a READ brings other data", []Invariant{Read, Atomics}, func(m *mutation) tamper {
		return tamper{completions: func(w *world, wcs []roce.Completion) []roce.Completion {
			for _, e := range live(w) {
				if len(e.sends) > 0 && e.sends[0].gets && e.sends[0].size > 0 && len(wcs) > 0 &&
					wcs[0].WRID == e.sends[0].id && wcs[0].QPN == e.info.QPN &&
					wcs[0].Status == roce.StatusSuccess && m.strike(true) {
					e.arena.mem[e.sends[0].local.off+e.sends[0].localAt] ^= 0x10
				}
			}
			return wcs
		}}
	}},
	{"a WRITE is executed again", []Invariant{Memory, Read}, func(m *mutation) tamper {
		var again func()
		return tamper{after: func(w *world) {
			if again != nil {
				again()
				return
			}
			for _, e := range live(w) {
				if len(e.sends) == 0 || e.sends[0].name != "WRITE" || e.sends[0].size < 8 ||
					e.unreliable() {
					continue
				}
				o, owner := e.sends[0], e.peer
				again = func() {
					// When it is complete and nobody uses the place any more.
					// That it is not there still makes it a change.
					place := owner.arena.mem[o.distant.off+o.distantAt:][:o.size]
					data := make([]byte, o.size)
					fill(data, o.key)
					if o.complete && o.distant.free() && !owner.dead &&
						m.strike(!bytes.Equal(place, data)) {
						copy(place, data)
					}
				}
				return
			}
		}}
	}},
	{"a message comes twice", []Invariant{Completion, Delivery}, func(m *mutation) tamper {
		return tamper{completions: func(_ *world, wcs []roce.Completion) []roce.Completion {
			for i, wc := range wcs {
				if wc.Opcode == roce.WCRecv && wc.Status == roce.StatusSuccess && m.strike(true) {
					wc.WRID++ // of the next receive
					return slices.Insert(slices.Clone(wcs), i+1, wc)
				}
			}
			return wcs
		}}
	}},
	{"a transmit frame leaks", []Invariant{Residue}, func(m *mutation) tamper {
		return tamper{after: func(w *world) {
			if n := w.nodes[0]; w.quiet && n.up && n.config.TxFrames > 3 && !m.struck {
				m.struck = n.port.Reserve(make([]xsk.TxFrame, 1)) == 1
			}
		}}
	}},
	{"a packet is not counted", []Invariant{Counters}, func(m *mutation) tamper {
		return tamper{after: func(w *world) {
			n := w.nodes[0]
			var tx [1]xsk.TxFrame
			if !w.quiet || !n.up || m.struck || n.port.Reserve(tx[:]) == 0 {
				return
			}
			m.struck = true
			to := campaign.MAC(1, 0)
			tx[0].Len = 60
			copy(tx[0].Data, to[:])
			n.port.Transmit(tx[:])
			w.must(n.port.Flush())
		}}
	}},
	{"a node stops for ever", []Invariant{Liveness}, func(m *mutation) tamper {
		return tamper{after: func(w *world) {
			for _, e := range live(w) {
				if w.quiet && len(e.sends) > 0 && m.strike(true) {
					// Its timers with it: nobody drives the device any more.
					e.node.frozen++
				}
			}
		}}
	}},
	{"the engine panics", []Invariant{Panic}, func(m *mutation) tamper {
		return tamper{after: func(*world) {
			if m.strike(true) {
				panic("a broken invariant")
			}
		}}
	}},
}

// TestMutants makes each mutant strike in several seeds: one of the invariants
// that are meant to find it must, in four of five, and in the others none other.
func TestMutants(t *testing.T) { hunt(t, mutants) }

func hunt(t *testing.T, mutants []mutant) {
	t.Helper()
	// Of too few, chance decides what part is found; some can hardly strike more often.
	const few, strikes = 5, 10
	for _, mt := range mutants {
		struck, found := 0, 0
		for seed := uint64(1); seed < 400 && struck < strikes; seed++ {
			m := &mutation{}
			// Starved hosts lose connections before there is a chance to strike.
			c := deriveLent(seed)
			r := runConfig(t.Context(), &c, &Options{}, mt.tamper(m))
			if !m.struck {
				continue
			}
			struck++
			if r.Violation == nil {
				continue
			}
			found++
			if !slices.Contains(mt.want, r.Violation.Invariant) {
				t.Errorf("%s: found by %s", mt.name, r.Violation)
			}
		}
		if struck < few || 5*found < 4*struck {
			t.Errorf("%s: struck in %d runs, found in %d", mt.name, struck, found)
		}
	}
}

// TestHostileNetwork repairs the ICRC of damaged frames: nothing else can see
// wrong payload, so the model must.
func TestHostileNetwork(t *testing.T) {
	found := map[Invariant]int{}
	for seed := uint64(1); seed <= 20; seed++ {
		c := derive(seed)
		r := runConfig(t.Context(), &c, &Options{}, tamper{config: func(c *Config) {
			c.Faults.Corrupt, c.Faults.Hostile, c.Ways = 0.2, true, nil
		}})
		if r.Violation != nil {
			found[r.Violation.Invariant]++
			if r.Violation.Invariant == Panic {
				t.Error(r)
			}
		}
	}
	if found[Memory]+found[Read] < 5 {
		t.Errorf("wrong data was found in few runs: %v", found)
	}
}

// TestBounds gives the checker of windows snapshots that break one bound each.
func TestBounds(t *testing.T) {
	l := limits{window: 8, longest: 4, sends: 4, receives: 2, responses: 3, reads: 2}
	good := roce.Snapshot{
		State: roce.StateRTS, UnackedPSN: 0xfffffe, NextPSN: 2, TopPSN: 3, ExpectedPSN: 100,
		SendPosted: 4, SendBegun: 2, RecvPosted: 2, Responses: 3, Outstanding: 2,
	}
	peer := roce.Snapshot{State: roce.StateRTS, ExpectedPSN: 1}
	if wrong := outOfBounds(&l, &good, &good, &peer); wrong != "" {
		t.Errorf("good: %s", wrong)
	}
	for want, change := range map[string]func(before, s, peer *roce.Snapshot){
		"in flight":             func(_, s, _ *roce.Snapshot) { s.TopPSN = 20 },
		"outside of the window": func(_, s, _ *roce.Snapshot) { s.NextPSN = 4 },
		"never sent":            func(_, _, p *roce.Snapshot) { p.ExpectedPSN = 4 },
		"is done":               func(_, _, p *roce.Snapshot) { p.ExpectedPSN = 0xfffffd },
		"send requests begun":   func(_, s, _ *roce.Snapshot) { s.SendBegun = 5 },
		"room for 4":            func(_, s, _ *roce.Snapshot) { s.SendPosted = 5 },
		"receives, room for":    func(_, s, _ *roce.Snapshot) { s.RecvPosted = 3 },
		"answers wait":          func(_, s, _ *roce.Snapshot) { s.Responses = 4 },
		"are outstanding":       func(_, s, _ *roce.Snapshot) { s.Outstanding = 3 },
		"were kept":             func(b, s, _ *roce.Snapshot) { b.EarlyRequests = 1 },
		"acknowledged PSN":      func(b, _, _ *roce.Snapshot) { b.UnackedPSN = 0 },
		"expected PSN went":     func(b, _, _ *roce.Snapshot) { b.ExpectedPSN = 101 },
	} {
		b, s, p := good, good, peer
		change(&b, &s, &p)
		if wrong := outOfBounds(&l, &b, &s, &p); !strings.Contains(wrong, want) {
			t.Errorf("%s: %q", want, wrong)
		}
	}
}

// TestRest does the same for the checker of a queue pair at rest.
func TestRest(t *testing.T) {
	good := roce.Snapshot{
		State: roce.StateRTS, UnackedPSN: 7, NextPSN: 7, TopPSN: 7, RecvPosted: 2,
	}
	peer := roce.Snapshot{State: roce.StateRTS, ExpectedPSN: 7}
	if wrong := notAtRest(&good, &peer, 2); wrong != "" {
		t.Errorf("good: %s", wrong)
	}
	for name, change := range map[string]func(s, peer *roce.Snapshot){
		"state":    func(s, _ *roce.Snapshot) { s.State = roce.StateErr },
		"sends":    func(s, _ *roce.Snapshot) { s.SendPosted = 1 },
		"answers":  func(s, _ *roce.Snapshot) { s.Responses = 1 },
		"rnr":      func(s, _ *roce.Snapshot) { s.RNRWaiting = true },
		"receives": func(s, _ *roce.Snapshot) { s.RecvPosted = 1 },
		"window":   func(s, _ *roce.Snapshot) { s.TopPSN = s.TopPSN.Add(1) },
		"reads":    func(s, _ *roce.Snapshot) { s.Outstanding = 1 },
		"late":     func(s, _ *roce.Snapshot) { s.EarlyRequests = 1 },
		"early":    func(s, _ *roce.Snapshot) { s.EarlyResponses = 1 },
		"peer":     func(_, p *roce.Snapshot) { p.ExpectedPSN = wire.PSN(6) },
	} {
		s, p := good, peer
		change(&s, &p)
		if notAtRest(&s, &p, 2) == "" {
			t.Errorf("%s: not seen", name)
		}
	}
}
