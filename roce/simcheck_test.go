package roce_test

import (
	"bytes"
	"encoding/binary"
	"slices"

	"xroce/roce"
)

// check holds the invariants after each event.
func (s *sim) check() {
	for i, e := range s.ends {
		for _, wc := range drain(s.t, e.send) {
			s.sendDone(i, e, wc)
		}
		for _, wc := range drain(s.t, e.recv) {
			s.recvDone(i, e, wc)
		}
		// What is gone without a completion must have been unsignaled.
		for out := int(e.qp.Snapshot().SendPosted); len(e.sends) > out && e.status == 0; {
			if e.sends[0].signaled {
				s.failf("end %d: no completion for %+v", i, e.sends[0])
			}
			s.sendRetired(i, e, e.sends[0])
			e.sends = e.sends[1:]
		}
		s.checkWindows(i, e)
	}
}

// sendDone takes a send completion: requests complete in order, each once;
// only unsignaled ones in silence, and only as success.
func (s *sim) sendDone(i int, e *simEnd, wc roce.Completion) {
	failed := wc.Status != roce.StatusSuccess
	for len(e.sends) > 0 && e.sends[0].id != wc.WRID && !e.sends[0].signaled {
		s.sendRetired(i, e, e.sends[0])
		e.sends = e.sends[1:]
	}
	if len(e.sends) == 0 || e.sends[0].id != wc.WRID {
		s.failf("end %d: completion %+v out of order, outstanding %+v", i, wc, e.sends)
		return
	}
	op := e.sends[0]
	e.sends = e.sends[1:]
	if failed && wc.Opcode != wcOpcode[op.op] {
		s.failf("end %d: %+v for %+v", i, wc, op)
	}
	switch {
	case failed && e.status == 0:
		// The end of the connection: a lost cause here, or the peer's end.
		e.status, s.broken = wc.Status, 1
		if wc.Status != roce.StatusRetryExcErr {
			s.failf("end %d: %+v", i, wc)
		}
	case failed:
		if wc.Status != roce.StatusWRFlushErr {
			s.failf("end %d: %+v after a failure", i, wc)
		}
	case e.status != 0:
		s.failf("end %d: %+v after a failure", i, wc)
	case !op.signaled:
		s.failf("end %d: completion of unsignaled request %+v", i, wc)
	default:
		if wc.Opcode != wcOpcode[op.op] || op.op == roce.OpRead && wc.ByteLen != uint32(op.n) {
			s.failf("end %d: %+v for %+v", i, wc, op)
		}
		s.sendRetired(i, e, op)
	}
}

// sendRetired checks what a successful request left here.
func (s *sim) sendRetired(i int, e *simEnd, op simOp) {
	if e.status != 0 {
		return
	}
	switch op.op {
	case roce.OpRead:
		if !bytes.Equal(e.buf[op.dst:op.dst+op.n], e.peer.buf[op.src:op.src+op.n]) {
			s.failf("end %d: READ %d of %d bytes brought other data", i, op.id, op.n)
		}
	case roce.OpFetchAdd, roce.OpCmpSwap:
		if old := binary.NativeEndian.Uint64(e.buf[op.dst:]); old != op.old {
			s.failf("end %d: %s %d found %#x, want %#x", i, op.op, op.id, old, op.old)
		}
	case roce.OpLocalInv:
		if op.key.Valid() {
			s.failf("end %d: LOCAL_INV %d left the key valid", i, op.id)
		}
	}
}

// recvDone takes a receive completion: messages arrive in order, each once.
func (s *sim) recvDone(i int, e *simEnd, wc roce.Completion) {
	if len(e.recvs) == 0 || e.recvs[0].id != wc.WRID {
		s.failf("end %d: receive %+v, posted %+v", i, wc, e.recvs)
		return
	}
	rv := e.recvs[0]
	e.recvs = e.recvs[1:]
	if wc.Status != roce.StatusSuccess {
		if wc.Status != roce.StatusWRFlushErr || e.qp.State() != roce.StateErr ||
			wc.Opcode != roce.WCRecv {
			s.failf("end %d: receive %+v", i, wc)
		}
		return
	}
	if len(e.arrive) == 0 {
		s.failf("end %d: receive %+v of nothing", i, wc)
		return
	}
	if s.unreliable {
		if !slices.ContainsFunc(e.arrive, func(m simMsg) bool { return e.isMsg(wc, rv, m) }) {
			s.failf("end %d: receive %+v is no message", i, wc)
		}
		return
	}
	m := e.arrive[0]
	e.arrive = e.arrive[1:]
	if m.key != nil && m.key.Valid() {
		s.failf("end %d: receive %+v before the key is out of use", i, wc)
	}
	if !e.isMsg(wc, rv, m) {
		s.failf("end %d: receive %+v is not %s of %d bytes", i, wc, m.op, len(m.data))
	}
}

// isMsg reports whether a receive holds a message, and its completion says so.
func (e *simEnd) isMsg(wc roce.Completion, rv simRecv, m simMsg) bool {
	want := roce.Completion{
		WRID: rv.id, Opcode: roce.WCRecv, QPN: e.qp.Num(), Time: wc.Time,
		ByteLen: uint32(len(m.data)),
	}
	if m.op == roce.OpWriteImm {
		want.Opcode = roce.WCRecvRDMAWithImm
	} else if !bytes.Equal(e.buf[rv.off:rv.off+len(m.data)], m.data) {
		return false
	}
	if hasImm(m.op) {
		want.Flags, want.Imm = roce.WCWithImm, m.imm
	}
	if m.key != nil {
		want.Flags, want.InvalidatedKey = roce.WCWithInv, m.key.RKey()
	}
	return wc == want
}

// checkWindows compares the PSNs of both ends and the bounds of all queues.
func (s *sim) checkWindows(i int, e *simEnd) {
	a, b := e.qp.Snapshot(), e.peer.qp.Snapshot()
	if a.State != roce.StateRTS || b.State != roce.StateRTS {
		return
	}
	window := or(s.p.o.Window, 256)
	longest := simSlot / s.p.o.MTU.Bytes()
	top := a.TopPSN.Diff(a.UnackedPSN)
	expected := b.ExpectedPSN.Diff(a.UnackedPSN)
	next := a.NextPSN.Diff(a.UnackedPSN)
	if s.unreliable || !s.sends(i) {
		e.before = &a
		return
	}
	switch {
	case top < 0 || int(top) > window+longest:
		s.failf("end %d: %d PSNs outstanding, window %d", i, top, window)
	case next < 0 || next > top:
		s.failf("end %d: next PSN is not in the window: %s", i, a)
	case expected < 0 || expected > top:
		s.failf("end %d: peer expects what was never sent or is done: %s; %s", i, a, b)
	case a.Outstanding > uint32(s.p.o.MaxRd):
		s.failf("end %d: %d READs outstanding", i, a.Outstanding)
	case a.Responses > 2*int(s.p.o.MaxRd)+1:
		s.failf("end %d: %d answers wait", i, a.Responses)
	case e.before != nil && a.UnackedPSN.Before(e.before.UnackedPSN):
		s.failf("end %d: acknowledged PSN went back: %s", i, a)
	case e.before != nil && a.ExpectedPSN.Before(e.before.ExpectedPSN):
		s.failf("end %d: expected PSN went back: %s", i, a)
	}
	e.before = &a
}

// checkMemory compares all memory with the model at the end.
func (s *sim) checkMemory() {
	for i, e := range s.ends {
		want := make([]byte, simConst)
		fill(want, s.seed+uint64(i))
		switch {
		case !bytes.Equal(e.buf[:simConst], want):
			s.failf("end %d: data to send changed", i)
		case !s.unreliable && !bytes.Equal(e.buf[simConst:simConst+simWrite], e.model):
			s.failf("end %d: written data differs from the model", i)
		}
		for n, want := range e.words {
			if got := binary.NativeEndian.Uint64(e.buf[simNumber+8*n:]); got != want {
				s.failf("end %d: number %d is %#x, want %#x", i, n, got, want)
			}
		}
		for slot := range 2 * simSlots {
			at := simTarget + slot*(simSlot+guard) + simSlot
			if !bytes.Equal(e.buf[at:at+guard], make([]byte, guard)) {
				s.failf("end %d: bytes behind slot %d were touched", i, slot)
			}
		}
	}
}

// checkHolds wants every kept packet back: when all is done by itself, and else
// when the QPs are reset.
func (s *sim) checkPool() {
	for i, e := range s.ends {
		if s.broken != 0 {
			must(s.t, e.qp.Modify(s.p.now, &roce.Attr{}, roce.AttrState))
		}
		if free := e.pool.Free(); free != s.p.o.Pool {
			s.failf("end %d: %d of %d packets back: %s", i, free, s.p.o.Pool, e.qp.Snapshot())
		}
	}
}
