package trial

import (
	"testing"

	"xroce/roce"
)

// lent makes a tamper that strikes once, at an endpoint whose window fits.
func lent(m *mutation, when func(e *endpoint) bool, change func(e *endpoint)) tamper {
	return tamper{after: func(w *world) {
		for _, e := range live(w) {
			if e.ticket.mw != nil && !e.deregistered() && when(e) && m.strike(true) {
				change(e)
			}
		}
	}}
}

// refused makes a tamper that reports a request as done that was refused for this.
func refused(m *mutation, why badness) tamper {
	return tamper{completions: func(w *world, wcs []roce.Completion) []roce.Completion {
		for _, c := range w.conns {
			for _, e := range c.ends {
				if len(e.sends) > 0 && len(wcs) > 0 && wcs[0].WRID == e.sends[0].id &&
					e.qp != nil && wcs[0].QPN == e.info.QPN && e.sends[0].bad == why &&
					wcs[0].Status == roce.StatusRemAccessErr && m.strike(true) {
					wcs[0].Status, wcs[0].Opcode = roce.StatusSuccess, e.sends[0].done
					wcs[0].ByteLen = 0
					if e.sends[0].gets {
						wcs[0].ByteLen = uint32(e.sends[0].size)
					}
				}
			}
		}
		return wcs
	}}
}

// unsaid is what finds a success that was none: an unsignaled request says nothing.
var unsaid = []Invariant{Status, Completion}

// found is what finds memory that is not as it must be, after any operation.
var found = []Invariant{Memory, Read}

// lendMutants are of memory windows.
var lendMutants = []mutant{
	{"a byte behind a window changes", found, func(m *mutation) tamper {
		return lent(m, func(e *endpoint) bool { return !e.ticket.gone }, func(e *endpoint) {
			s := e.arena.pools[poolTicket][0]
			e.arena.mem[s.off+s.n] ^= 1
		})
	}},
	{"a byte before a window changes", found, func(m *mutation) tamper {
		return lent(m, func(e *endpoint) bool { return !e.ticket.gone }, func(e *endpoint) {
			e.arena.mem[e.arena.pools[poolTicket][0].off-1] ^= 1
		})
	}},
	{"a window that was taken back is written to", found, func(m *mutation) tamper {
		return lent(m, func(e *endpoint) bool {
			return e.ticket.still != nil && e.arena.pools[poolTicket][0].free()
		}, func(e *endpoint) {
			// With what the model knows of: only that it is too late tells.
			s := e.arena.pools[poolTicket][0]
			e.arena.mem[s.off] ^= 1
			e.arena.want[s.off] ^= 1
		})
	}},
	{"a window is taken away behind its owner", []Invariant{Status}, func(m *mutation) tamper {
		return lent(m, func(e *endpoint) bool {
			// With a WRITE through it that has not begun.
			n, begun := len(e.peer.sends), int(e.peer.qp.Snapshot().SendBegun)
			if n == 0 || begun == n || e.ticket.gone {
				return false
			}
			o := e.peer.sends[n-1]
			return o.lent == e.ticket.key && o.size > 0 && o.bad == fine && !o.afterwards
		}, func(e *endpoint) { e.ticket.mw.Dealloc() })
	}},
	{"a bind fails for no reason", []Invariant{Status}, func(m *mutation) tamper {
		return completions(m, successOf(roce.WCBindMW),
			func(wcs []roce.Completion) []roce.Completion {
				wcs[0].Status = roce.StatusMWBindErr
				return wcs
			})
	}},
	{"a LOCAL_INV fails for no reason", []Invariant{Status}, func(m *mutation) tamper {
		return completions(m, successOf(roce.WCLocalInv),
			func(wcs []roce.Completion) []roce.Completion {
				wcs[0].Status = roce.StatusLocQPOpErr
				return wcs
			})
	}},
	{"a WRITE beside a window is done", unsaid, func(m *mutation) tamper {
		return refused(m, badBounds)
	}},
	{"a READ through a window to write is done", unsaid, func(m *mutation) tamper {
		return refused(m, badWindow)
	}},
	{"a key that was taken back works", unsaid, func(m *mutation) tamper {
		return refused(m, badTicket)
	}},
}

// TestLendMutants does with windows what TestMutants does.
func TestLendMutants(t *testing.T) { hunt(t, lendMutants) }
