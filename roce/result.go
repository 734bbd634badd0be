package roce

import (
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// This file is about the memory that results are stored in.

// lookAtResult reports whether the result of the work request that is to begin can be stored
// in pieces, all of which are checked. What is absent has been asked for then. Of a layout
// with very many elements it looks at a part alone: there is more, which comes next time.
func (r *requester) lookAtResult(w *sendWQE, list []SGE) (f mem.Fault, more bool) {
	by, before, result := r.localAccess(w), w.looked(), mem.OK
	for i := range list {
		s := &list[i]
		seen := min(before, s.Length)
		before -= seen
		if seen > 0 { // the key may have changed since
			f = r.keys().Check(by, s.LKey, s.Addr, int(s.Length), mem.LocalWrite)
		}
		n, looked := int(s.Length-seen), 0
		if n > 0 && f == mem.OK {
			looked, f = r.keys().Look(by, s.LKey, s.Addr+uint64(seen), n, mem.LocalWrite)
		}
		switch {
		case f == mem.FaultPage:
			result, f = f, mem.OK
		case f != mem.OK:
			return f, false
		case result == mem.OK:
			if w.passLooked(looked); looked < n {
				return mem.OK, true
			}
		}
	}
	return result, false
}

// lookOn lets the send queue wait for its next turn. Others have theirs before.
func (r *requester) lookOn(now Time) { r.stalled, r.mark = true, now+Nanosecond }

// missResult takes the fault that keeps the response p from being stored, off bytes
// into its work request. For want of a page the response is dropped and requested again
// after a wait, which costs no retry: the peer did what it should.
func (r *requester) missResult(now Time, w *sendWQE, p *wire.Packet, off uint32, fault mem.Fault) {
	if fault != mem.FaultPage {
		r.count.Inc(counter.SendErr)
		r.fail(now, StatusLocProtErr)
		return
	}
	list := r.sq.SGList(r.sq.Head(), int(w.numSGE))
	r.wantPages(r.localAccess(w), list, off, max(w.length, 8)-off, mem.LocalWrite)
	r.drop(p, reasonPage)
	if r.rnrWait {
		return // it is requested again after that wait
	}
	r.stall(now)
	// Packets of the response that come meanwhile do not tell of a loss.
	r.goBack(r.una)
	r.retried, r.resent, r.ackAt = true, true, 0
	r.recovery.resultDropped()
}

// carriesInline reports whether the completion of a work request may carry the
// response's data as inline payload. Else the data is written at once.
func (r *requester) carriesInline(w *sendWQE) bool {
	return w.length <= uint32(r.inline) && w.length > 0 && r.signals(w)
}

// takeSmall ends the oldest work request with a response that has all of its data.
func (r *requester) takeSmall(now Time, w *sendWQE, p *wire.Packet, head, tail []byte) {
	list := r.sq.SGList(r.sq.Head(), int(w.numSGE))
	var in queue.InlinePayload
	inline, fault := false, mem.OK
	if r.carriesInline(w) {
		inline, fault = r.inlines(&in, r.localAccess(w), list, head, tail)
	}
	if !inline && fault == mem.OK {
		r.sendCQ.FlushInline()
		fault = r.scatter(r.localAccess(w), list, 0, head)
		if fault == mem.OK {
			fault = r.scatter(r.localAccess(w), list, uint32(len(head)), tail)
		}
	}
	if fault != mem.OK {
		r.missResult(now, w, p, 0, fault)
		return
	}
	r.una = w.last.Add(1)
	if inline {
		r.deliverSend(now, w, w.length, &in)
	} else {
		r.deliverSend(now, w, w.length, nil)
	}
	r.progress(now)
}
