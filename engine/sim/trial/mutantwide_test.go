package trial

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"xroce/roce"
)

// finished makes a tamper that strikes when the oldest request of an endpoint
// completes with success, before the model hears of it.
func finished(m *mutation, when func(o *op) bool, change func(e *endpoint, o *op)) tamper {
	return tamper{completions: func(w *world, wcs []roce.Completion) []roce.Completion {
		for _, e := range live(w) {
			if len(e.sends) > 0 && len(wcs) > 0 && wcs[0].WRID == e.sends[0].id &&
				wcs[0].QPN == e.info.QPN && wcs[0].Status == roce.StatusSuccess &&
				when(e.sends[0]) && m.strike(true) {
				change(e, e.sends[0])
			}
		}
		return wcs
	}}
}

func named(name string) func(o *op) bool { return func(o *op) bool { return o.name == name } }

// setWord changes a word of the peer.
func setWord(e *endpoint, o *op, change func(v uint64) uint64) {
	b := e.peer.node.words.mem[o.at.word.at:]
	binary.NativeEndian.PutUint64(b, change(binary.NativeEndian.Uint64(b)))
}

// arrived makes a tamper that strikes at a completion of a receive of an endpoint
// that fits.
func arrived(
	m *mutation, when func(e *endpoint) bool,
	change func(e *endpoint, wcs []roce.Completion) []roce.Completion,
) tamper {
	return tamper{completions: func(w *world, wcs []roce.Completion) []roce.Completion {
		for _, e := range live(w) {
			if len(wcs) > 0 && wcs[0].Opcode == roce.WCRecv && wcs[0].QPN == e.info.QPN &&
				wcs[0].Status == roce.StatusSuccess && when(e) && m.strike(true) {
				return change(e, slices.Clone(wcs))
			}
		}
		return wcs
	}}
}

// wideMutants are of what widen adds.
var wideMutants = []mutant{
	{"an atomic is executed twice", []Invariant{Atomics}, func(m *mutation) tamper {
		return finished(m, named("FETCH_ADD"), func(e *endpoint, o *op) {
			setWord(e, o, func(v uint64) uint64 { return v + o.at.add })
		})
	}},
	{"an atomic is not executed", []Invariant{Atomics}, func(m *mutation) tamper {
		return finished(m, named("FETCH_ADD"), func(e *endpoint, o *op) {
			setWord(e, o, func(v uint64) uint64 { return v - o.at.add })
		})
	}},
	{"an old value is another", []Invariant{Atomics}, func(m *mutation) tamper {
		return finished(m, func(o *op) bool { return o.word && o.code != roce.OpRead },
			func(e *endpoint, o *op) { e.arena.mem[o.local.off+o.localAt] ^= 1 })
	}},
	{"a CMP_SWP swaps what is not equal", []Invariant{Atomics}, func(m *mutation) tamper {
		return finished(m, named("CMP_SWP"), func(e *endpoint, o *op) {
			setWord(e, o, func(uint64) uint64 { return o.at.swap + 1 })
		})
	}},
	{"a READ finds an old value", []Invariant{Atomics}, func(m *mutation) tamper {
		stale := func(o *op) bool {
			return o.name == "READ_WORD" && o.at.from > 0 &&
				o.at.word.seen[o.at.from-1] != o.at.word.seen[o.at.from]
		}
		return finished(m, stale, func(e *endpoint, o *op) {
			binary.NativeEndian.PutUint64(e.arena.mem[o.local.off+o.localAt:],
				o.at.word.seen[o.at.from-1])
		})
	}},
	{"an ATOMIC_WRITE is torn", []Invariant{Memory, Read}, func(m *mutation) tamper {
		alone := func(o *op) bool {
			return o.name == "ATOMIC_WRITE" && len(o.distant.claims) == 1
		}
		return finished(m, alone, func(e *endpoint, o *op) {
			clear(e.peer.arena.mem[o.distant.off+o.distantAt:][:4])
		})
	}},
	{"a fence is passed", []Invariant{Completion}, func(m *mutation) tamper {
		return tamper{after: func(w *world) {
			for _, e := range live(w) {
				s := e.qp.Snapshot()
				begun := len(e.sends) - int(s.SendPosted) + int(s.SendBegun)
				if s.Outstanding > 0 && s.SendBegun > 1 && e.sends[begun-2].counted &&
					e.sends[begun-1].code == roce.OpRead && m.strike(true) {
					e.sends[begun-1].fence = true
				}
			}
		}}
	}},
	{"a key out of use is good", []Invariant{Status, Completion}, func(m *mutation) tamper {
		often := func(c *Config) {
			for i := range c.Conns {
				if k := &c.Conns[i]; k.Type == roce.TypeRC {
					k.Weights[0], k.Weights[2], k.Bad = 0, 4, 0.2
					for row := range operations {
						if operations[row].name == "SEND_INV" {
							k.Weights[row] = 4
						}
					}
				}
			}
		}
		good := func(w *world, wcs []roce.Completion) []roce.Completion {
			for _, c := range w.conns {
				for _, e := range c.ends {
					if len(wcs) == 0 {
						break
					}
					for _, o := range e.sends {
						if o.bad == badTicket && wcs[0].WRID == o.id &&
							wcs[0].QPN == e.info.QPN &&
							wcs[0].Status == roce.StatusRemAccessErr && m.strike(true) {
							wcs = slices.Clone(wcs)
							wcs[0].Status, wcs[0].Opcode = roce.StatusSuccess, o.done
						}
					}
				}
			}
			return wcs
		}
		return tamper{config: often, completions: good}
	}},
	{"a key is not taken out of use", []Invariant{Delivery}, func(m *mutation) tamper {
		inv := func(e *endpoint) bool {
			return len(e.expect) > 0 && e.expect[0].key32 != 0 && !e.unreliable()
		}
		return arrived(m, inv, func(_ *endpoint, wcs []roce.Completion) []roce.Completion {
			wcs[0].Flags, wcs[0].InvalidatedKey = 0, 0
			return wcs
		})
	}},
	{"a UC message is torn", []Invariant{Delivery, Memory}, func(m *mutation) tamper {
		return arrived(m, (*endpoint).unreliable,
			func(e *endpoint, wcs []roce.Completion) []roce.Completion {
				if wcs[0].ByteLen == 0 {
					m.struck = false
					return wcs
				}
				r := e.posted(wcs[0].WRID)
				r.arena.mem[r.slot.off+r.at+int(wcs[0].ByteLen)-1] ^= 0x20
				return wcs
			})
	}},
	{"a UC message comes twice", []Invariant{Delivery, Completion}, func(m *mutation) tamper {
		inOrder := func(e *endpoint) bool {
			return e.unreliable() && !e.shuffled && e.shared == nil && len(e.recvs) > 1
		}
		return arrived(m, inOrder, func(e *endpoint, wcs []roce.Completion) []roce.Completion {
			if wcs[0].ByteLen < 8 {
				m.struck = false
				return wcs
			}
			a, b := e.recvs[0], e.recvs[1]
			copy(e.arena.mem[b.slot.off+b.at:], e.arena.mem[a.slot.off+a.at:][:wcs[0].ByteLen])
			again := wcs[0]
			again.WRID = b.id
			return slices.Insert(wcs, 1, again)
		})
	}},
	{"UC messages vanish", []Invariant{Delivery}, func(m *mutation) tamper {
		// More than faults can have lost.
		return tamper{after: func(w *world) {
			for _, e := range live(w) {
				if w.quiet && w.through() && e.unreliable() && !e.noRecvOnce &&
					m.strike(true) {
					e.lost += e.mayLose() + 1
				}
			}
		}}
	}},
	{"a receive of the SRQ completes twice", []Invariant{Completion}, func(m *mutation) tamper {
		return arrived(m, func(e *endpoint) bool { return e.shared != nil },
			func(_ *endpoint, wcs []roce.Completion) []roce.Completion {
				return slices.Insert(wcs, 0, wcs[0])
			})
	}},
	{
		"a message takes a receive out of turn",
		[]Invariant{Completion, Memory, Delivery},
		func(m *mutation) tamper {
			several := func(e *endpoint) bool { return e.shared != nil && len(e.shared.recvs) > 4 }
			return arrived(m, several,
				func(e *endpoint, wcs []roce.Completion) []roce.Completion {
					wcs[0].WRID = e.shared.recvs[len(e.shared.recvs)-1].id
					return wcs
				})
		},
	},
	{"a queue pair sends too fast", []Invariant{Conservation}, func(m *mutation) tamper {
		return tamper{after: func(w *world) {
			for _, e := range live(w) {
				if e.conn.config.RateLimit > 0 && e.todo > 2 && m.strike(e.paidUntil > 0) {
					e.paidUntil += roce.Second // as if it had sent that much
				}
			}
		}}
	}},
	{"the event of the limit is lost", []Invariant{Completion}, func(m *mutation) tamper {
		return tamper{after: func(w *world) {
			for _, n := range w.nodes {
				if n.running() && n.shared != nil && !n.shared.armed && n.config.SRQLimit &&
					n.shared.posted() > 0 && m.strike(true) {
					n.shared.armed = true
				}
			}
		}}
	}},
}

// posted finds a receive by its WRID.
func (e *endpoint) posted(id uint64) *receive {
	list := e.recvs
	if e.shared != nil {
		list = e.shared.recvs
	}
	for _, r := range list {
		if r.id == id {
			return r
		}
	}
	return nil
}

func TestWideMutants(t *testing.T) { hunt(t, wideMutants) }

// TestWordOrders gives the search for an order of atomics histories that have one
// and such that have none.
func TestWordOrders(t *testing.T) {
	add := func(n, old uint64, from, upTo int) *wordUse {
		return &wordUse{
			op: &op{operation: &operations[numPlainOps]}, add: n, old: old, from: from, upTo: upTo,
		}
	}
	for name, c := range map[string]struct {
		seen  []uint64
		lives [][]*wordUse
		want  string
	}{
		"one after the other": {
			[]uint64{0, 1, 3}, [][]*wordUse{{add(1, 0, 0, 1)}, {add(2, 1, 0, 2)}}, "",
		},
		"between two looks": {
			[]uint64{0, 3}, [][]*wordUse{{add(1, 2, 0, 1)}, {add(2, 0, 0, 1)}}, "",
		},
		"one unknown that was executed": {
			[]uint64{0, 1, 3}, [][]*wordUse{{add(1, 0, 0, 1), add(2, 0, 0, -1)}}, "",
		},
		"one unknown that was not": {
			[]uint64{0, 1}, [][]*wordUse{{add(1, 0, 0, 1), add(2, 0, 0, -1)}}, "",
		},
		"an unknown behind one that was not": {
			[]uint64{0, 4}, [][]*wordUse{{add(1, 0, 0, -1), add(4, 0, 0, -1)}}, "no order",
		},
		"twice": {[]uint64{0, 2}, [][]*wordUse{{add(1, 0, 0, 1)}}, "no order"},
		"never": {[]uint64{0}, [][]*wordUse{{add(1, 0, 0, 0)}}, "no order"},
		"the same found": {
			[]uint64{0, 3}, [][]*wordUse{{add(1, 0, 0, 1)}, {add(3, 0, 0, 1)}}, "both",
		},
		"before its post": {
			[]uint64{0, 1, 2}, [][]*wordUse{{add(1, 0, 1, 2)}, {add(1, 1, 0, 2)}}, "gone",
		},
		"after its end": {[]uint64{0, 1}, [][]*wordUse{{add(1, 0, 0, 0)}}, "later"},
		"not in order of posts": {
			[]uint64{0, 3}, [][]*wordUse{{add(1, 2, 0, 1), add(2, 0, 0, 1)}}, "predecessor",
		},
	} {
		w := &word{seen: c.seen, lives: c.lives}
		for _, uses := range c.lives {
			w.uses = append(w.uses, uses...)
		}
		if got := w.check(); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
