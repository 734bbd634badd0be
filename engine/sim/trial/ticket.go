package trial

import (
	"bytes"
	"fmt"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// A ticket is a small region of an endpoint, or a memory window of a part of it, that
// the peer writes to until the key is taken out of use: by the peer itself with
// SEND_INV, and that of a window by its owner too.
type ticket struct {
	mr   *engine.MR
	mw   *engine.MW // nil when the peer gets the key of the region
	key  uint32     // that the peer has, or had last
	gone bool       // it must not be used: a SEND_INV or a LOCAL_INV was posted
	took bool       // and was executed
	old  uint32     // the key before, when there was one

	// Of a window:
	revoking bool     // a LOCAL_INV is posted and not known to be complete
	binding  bool     // so is a BIND_MW
	revoked  []uint32 // keys that were taken away under the peer
	// still is the memory of the region, while nobody has a key for it.
	still []byte
}

// used reports whether there is a key that was taken out of use.
func (t *ticket) used() bool { return t.gone && !t.revoking || t.old != 0 }

// outOfUse is such a key, of memory that is there.
func (t *ticket) outOfUse() (rkey uint32, addr uint64) {
	if t.gone && !t.revoking {
		return t.key, t.mr.Addr()
	}
	return t.old, t.mr.Addr()
}

// wasRevoked reports whether a request lost its key while it was under way.
func (t *ticket) wasRevoked(o *op) bool {
	for _, key := range t.revoked {
		if o.lent == key && key != 0 {
			return true
		}
	}
	return false
}

// issue registers the memory of tickets anew.
func (e *endpoint) issue() {
	if e.arena.pools[poolTicket] == nil {
		return
	}
	if e.conn.config.Lends {
		e.issueWindow()
		return
	}
	var old uint32
	if e.ticket.mr != nil {
		old = e.ticket.mr.RKey()
		e.w.must(e.ticket.mr.Deregister())
	}
	mr, err := e.node.device.RegMR(e.node.pd, e.arena.region(poolTicket, poolTicket),
		mem.LocalWrite|mem.RemoteWrite|mem.Invalidatable)
	e.w.must(err)
	e.ticket = ticket{mr: mr, key: mr.RKey(), old: old}
}

// issueWindow makes a window that is not bound yet, and its region: that grants the
// peer nothing, and has canaries which the window leaves out.
func (e *endpoint) issueWindow() {
	mr, err := e.node.device.RegMR(e.node.pd, e.arena.region(poolTicket, poolTicket),
		mem.LocalWrite|mem.MWBind)
	e.w.must(err)
	mw, err := e.node.pd.AllocMW(mem.WindowType2)
	e.w.must(err)
	e.ticket = ticket{mr: mr, mw: mw, key: mw.RKey(), gone: true, took: true}
}

// drop gives the ticket back.
func (t *ticket) drop(w *world) {
	if t.mw != nil {
		if t.mw.Bound() {
			if t.mr.Deregister() == nil {
				w.fail(Residue, "a region was deregistered under a window")
			}
		}
		t.mw.Dealloc()
	}
	if t.mr != nil {
		w.must(t.mr.Deregister())
	}
}

// claimTicket takes a place in the region for a WRITE, and reports whether its key may be
// used.
func claimTicket(e *endpoint, o *op) bool {
	if e.peer.ticket.gone {
		return false
	}
	o.size = min(o.size, ticketSize)
	if !claimSource(e, o) {
		return false
	}
	claimDistant(e, o, e.peer.arena.pools[poolTicket][0])
	o.lent = e.peer.ticket.key
	return true
}

// claimInvalidate takes the key of the region, and reports whether it may be used.
func claimInvalidate(e *endpoint, o *op) bool {
	t := &e.peer.ticket
	if t.gone || !claimSource(e, o) {
		return false
	}
	t.gone, o.key32 = true, t.key
	return true
}

// arriveInvalidate makes it the receiver's turn to make a new key.
func arriveInvalidate(e *endpoint, o *op, r *receive) string {
	e.ticket.took = true
	e.ticket.quiesce(e)
	return arriveSend(e, o, r)
}

// reissue makes a new key for one that was taken out of use, sooner or later:
// the peer may try the old one meanwhile. It reports whether it did.
func (e *endpoint) reissue() bool {
	if e.ticket.mw != nil {
		return e.lend()
	}
	if !e.ticket.took || e.deregistered() || !e.w.quiet && !one(e.w.rng, 8) {
		return false
	}
	e.issue()
	return true
}

// lend binds the window of the ticket when it is free, and takes it back now and then
// from a peer that still uses it. It reports whether it did either.
func (e *endpoint) lend() bool {
	t, r := &e.ticket, e.w.rng
	if t.binding || t.revoking || e.deregistered() || e.conn.breaking ||
		len(e.sends) >= e.conn.config.SendDepth {
		return false
	}
	switch {
	case t.took && (e.w.quiet || one(r, 8)):
		if wrong := t.disturbed(e); wrong != "" {
			e.w.fail(Memory, "%s: %s", e, wrong)
		}
		o := e.ownOp("BIND_MW", mem.NextKey(t.mw.RKey()))
		t.binding, t.still = true, nil
		return e.postOwn(o, &roce.SendWR{Bind: e.binding(o.key32)})
	case !t.gone && !e.w.quiet && one(r, 300):
		o := e.ownOp("LOCAL_INV", t.key)
		t.gone, t.revoking = true, true
		t.revoked = append(t.revoked, t.key)
		return e.postOwn(o, &roce.SendWR{InvalidateKey: o.key32})
	}
	return false
}

// binding is what the window is bound to: the slot, without what is around it.
func (e *endpoint) binding(key uint32) mem.Bind {
	s := e.arena.pools[poolTicket][0]
	return mem.Bind{
		Window: e.ticket.mw.RKey(), NewKey: key, LKey: e.ticket.mr.LKey(),
		Addr: e.addr(e.ticket.mr, poolTicket, s.off), Length: uint64(s.n),
		Access: mem.RemoteWrite,
	}
}

// ownOp makes a request that is done here.
func (e *endpoint) ownOp(name string, key uint32) *op {
	for i := range operations {
		if operations[i].name == name {
			return &op{
				operation: &operations[i], id: e.ids, key32: key, afterwards: e.doomed,
				signaled: e.w.rng.Float64() >= e.conn.config.Unsig,
			}
		}
	}
	panic("trial: no operation " + name)
}

// postOwn posts a request of ownOp, and reports whether it was taken.
func (e *endpoint) postOwn(o *op, wr *roce.SendWR) bool {
	wr.WRID, wr.Opcode = o.id, o.code
	if o.signaled {
		wr.Flags = roce.SendSignaled
	}
	if err := e.qp.PostSend(wr); err != nil {
		e.w.fail(Conservation, "%s: %s was refused: %v", e, o.name, err)
		return false
	}
	e.w.say("%s: post %s %d, key %#x", e, o.name, o.id, o.key32)
	if len(e.sends) == 0 {
		e.progressed()
	}
	e.ids++
	e.sends = append(e.sends, o)
	return true
}

// retireBind gives the peer the key.
func retireBind(e *endpoint, o *op) string {
	t := &e.ticket
	t.binding = false
	if !e.deregistered() && t.mw.RKey() != o.key32 {
		return fmt.Sprintf("the window's key is %#x, want %#x", t.mw.RKey(), o.key32)
	}
	t.old, t.key, t.gone, t.took = t.key, o.key32, false, false
	return ""
}

// retireRevoke makes sure that nothing changes until the window is bound again.
func retireRevoke(e *endpoint, _ *op) string {
	e.ticket.revoking, e.ticket.took = false, true
	e.ticket.quiesce(e)
	return ""
}

// quiesce notes the memory of a window that was taken back.
func (t *ticket) quiesce(e *endpoint) {
	if t.mw != nil {
		t.still = bytes.Clone(e.arena.region(poolTicket, poolTicket))
	}
}

// scrambled says that the application wrote to its memory.
func (t *ticket) scrambled(e *endpoint) {
	if t.still != nil {
		t.quiesce(e)
	}
}

// disturbed compares the memory of a window that was taken back with what it was
// then. It returns what is wrong, "" when nothing is.
func (t *ticket) disturbed(e *endpoint) string {
	if t.still == nil || bytes.Equal(t.still, e.arena.region(poolTicket, poolTicket)) {
		return ""
	}
	return "memory changed that nobody had a key for"
}
