package roce

import (
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// This file is about when a work request may start, and with which PSNs.

// localBurst is how many work requests that need no packet are done in one turn: others are to
// have theirs.
const localBurst = 64

// begin starts with the next posted work request, if it may start now.
func (r *requester) begin(now Time) bool {
	for done := 0; ; done++ {
		if r.new == r.sq.Tail() || r.failed || r.State() != StateRTS ||
			r.ahead(r.max) >= r.window {
			return false
		}
		w := r.sq.At(r.new)
		op := w.opcode.Op()
		if op.Reply != verbs.ReplyNone && !r.tooLong(w) {
			return r.mayBegin(now, w, op) && r.beginAt(now, w, op)
		}
		// Work that is done here waits for everything before it.
		if r.new != r.sq.Head() {
			return false
		}
		if done == localBurst {
			r.lookOn(now)
			return false
		}
		status, more := r.workLocally(w)
		if more {
			r.lookOn(now)
			return false
		}
		if status != StatusSuccess {
			r.failRequest(now, r.new, status)
			return false
		}
		r.new++
		r.cur = r.new
		r.completeSend(now, w, 0)
	}
}

// mayBegin reports whether limits and order let a work request begin now.
func (r *requester) mayBegin(now Time, w *sendWQE, op *verbs.Op) bool {
	if w.flags&SendFence != 0 {
		if r.out > 0 {
			return false
		}
		r.sendCQ.FlushInline() // it may send what was read
	}
	if op.Count {
		if r.attr.MaxRdAtomic == 0 {
			// It was posted before the attribute was taken down, and would
			// wait for ever.
			r.failRequest(now, r.new, StatusLocQPOpErr)
			return false
		}
		// A response that comes before those of earlier requests needs room in the
		// reassembly buffer. A request that is alone has none before it.
		span := uint32(maxSpan)
		if r.max != r.una {
			span = r.recovery.span()
		}
		if r.out >= uint32(r.attr.MaxRdAtomic) || r.ahead(r.max)+r.packets(w) > span {
			return false
		}
	}
	// Beyond the peer's credits one message at a time goes, packet by packet, each
	// acknowledged before the next is sent.
	return !op.Notify || r.una == r.max || r.credit.covers(r.credit.ssn+1)
}

// beginAt gives a work request its PSNs, if its memory is as it should be.
func (r *requester) beginAt(now Time, w *sendWQE, op *verbs.Op) bool {
	if w.flags&SendInline == 0 {
		w.since = r.keys().Epoch()
		switch f, more := r.mayAccess(w, op); {
		case more:
			r.lookOn(now)
			return false
		case f == mem.FaultPage:
			r.stall(now)
			return false
		case f != mem.OK:
			r.failRequest(now, r.new, StatusLocProtErr)
			return false
		}
	}
	w.first, w.last = r.max, r.max.Add(r.packets(w)-1)
	r.max = w.last.Add(1)
	r.new++
	r.credit.ssn = (r.credit.ssn + 1) & 0xffffff
	w.ssn = r.credit.ssn
	w.overCredit = op.Notify && !r.credit.covers(w.ssn)
	if op.Count {
		r.out++
	}
	return true
}

// mayAccess checks the memory of the work request that is to begin. The pages
// that a response is written to must be present as well, or it would have to be dropped.
// There may be more of them to look at than it could in one turn.
func (r *requester) mayAccess(w *sendWQE, op *verbs.Op) (f mem.Fault, more bool) {
	list := r.sq.SGList(r.new, int(w.numSGE))
	if op.Write {
		return r.lookAtResult(w, list)
	}
	for i := range list {
		s := &list[i]
		if s.Length == 0 {
			continue
		}
		f := r.common.recent.Check(r.keys(), r.localAccess(w), s.LKey, s.Addr, int(s.Length), 0)
		if f != mem.OK {
			return f, false
		}
	}
	return mem.OK, false
}

// packets is how many PSNs a work request takes.
func (r *requester) packets(w *sendWQE) uint32 {
	if w.opcode.Op().Word || r.pmtu() == 0 {
		return 1 // of a datagram too, which has no path MTU
	}
	return max(1, (w.length+r.pmtu()-1)/r.pmtu())
}

// workLocally does what needs no packet, or a part of it.
func (r *requester) workLocally(w *sendWQE) (s Status, more bool) {
	if r.typ.Datagram() {
		r.count.Inc(counter.DatagramTooLong)
		return StatusSuccess, false
	}
	switch w.opcode {
	case OpBindMW:
		return r.bind(w), false
	case OpUMR:
		return r.configure(w)
	}
	if r.keys().Invalidate(r.domain.Local(), w.imm) != mem.OK {
		return StatusLocQPOpErr, false
	}
	return StatusSuccess, false
}

// tooLong reports whether a work request is a datagram that does not fit one packet.
// It is not sent and yet complete, as the architecture has it (IBA C10-93.1.1); a
// counter tells.
func (r *requester) tooLong(w *sendWQE) bool {
	return r.typ.Datagram() && int(w.length) > r.portMTU.Bytes()
}
