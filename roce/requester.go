package roce

import (
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// The requester turns work requests into request packets.
//
//	            head          cur           new           tail
//	send queue   | unacknowledged | to send again | not begun |
//	PSNs        una             psn             max
//
// A work request is begun when its first packet can go: it then gets its PSNs,
// max moves behind them, and whatever happens later, the same PSN always
// carries the same bytes. To send again is to move psn and cur back.
type requester struct {
	psn wire.PSN // the next PSN to send
	max wire.PSN // the first PSN that no begun work request has
	una wire.PSN // the oldest PSN without an answer
	cur uint32   // send queue entry that psn belongs to; new when psn == max
	new uint32   // the first send queue entry that is not begun

	window   uint32 // limit of psn - una for SEND and WRITE packets
	sinceAck uint32 // packets since the last one that asked for an ACK
	sentTop  wire.PSN
	reads    uint32 // READs begun and not complete

	retry    uint8 // left of RETRY_CNT
	rnrRetry uint8 // left of RNR_RETRY
	rnrWait  bool
	rnrAt    Time // end of the wait after an RNR NAK
	ackAt    Time // when the local ACK timer expires, 0 when it is off

	// retried says that everything from una on was sent again for a NAK and
	// nothing was acknowledged since: more NAKs for the same loss are old.
	retried bool
	// failed says that entry failAt cannot be sent, or not to its end. It
	// completes with failStatus when all before it have completed.
	failed     bool
	failStatus Status
	failAt     uint32
}

// packetOps gives the packet opcodes of each operation by place in the message.
var packetOps = [len(sendOps)]struct{ first, middle, last, only wire.Opcode }{
	OpSend:     {wire.RCSendFirst, wire.RCSendMiddle, wire.RCSendLast, wire.RCSendOnly},
	OpSendImm:  {wire.RCSendFirst, wire.RCSendMiddle, wire.RCSendLastImm, wire.RCSendOnlyImm},
	OpWrite:    {wire.RCWriteFirst, wire.RCWriteMiddle, wire.RCWriteLast, wire.RCWriteOnly},
	OpWriteImm: {wire.RCWriteFirst, wire.RCWriteMiddle, wire.RCWriteLastImm, wire.RCWriteOnlyImm},
	OpRead:     {only: wire.RCReadRequest},
}

// restart begins a connection at a PSN.
func (r *requester) restart(psn wire.PSN) {
	r.psn, r.max, r.una, r.sentTop = psn, psn, psn, psn
}

// stop turns the timers off.
func (r *requester) stop() {
	r.rnrWait, r.ackAt, r.failed, r.reads = false, 0, false, 0
}

// ahead is how far p lies ahead of una.
func (r *requester) ahead(p wire.PSN) uint32 { return uint32(p.Sub(uint32(r.una))) }

// nextRequest writes the next request packet, if one may go now.
func (q *QP) nextRequest(now Time, frame []byte) int {
	r := &q.req
	if r.rnrWait || !q.State().sends() || (r.cur == r.new && !q.begin(now)) {
		return 0
	}
	w := q.sq.at(r.cur)
	if r.ahead(r.psn) >= r.window || (r.failed && r.cur == r.failAt) {
		return 0
	}
	var n int
	if sendOps[w.opcode].read {
		n = q.putReadRequest(w, frame)
	} else {
		n = q.putRequest(now, w, frame)
	}
	if n == 0 {
		return 0
	}
	if r.ackAt == 0 {
		q.startAckTimer(now)
	}
	return n
}

// begin starts with the next posted work request, if it may start now.
func (q *QP) begin(now Time) bool {
	r := &q.req
	if r.new == q.sq.tail.Load() || r.failed || q.State() == StateSQD ||
		r.ahead(r.max) >= r.window {
		return false
	}
	w := q.sq.at(r.new)
	op := &sendOps[w.opcode]
	if op.read && q.attr.MaxRdAtomic == 0 {
		// It was posted before the attribute was taken down, and would wait
		// for ever.
		q.failRequest(now, r.new, StatusLocQPOpErr)
		return false
	}
	if (op.read && r.reads >= uint32(q.attr.MaxRdAtomic)) ||
		(w.flags&SendFence != 0 && r.reads > 0) {
		return false
	}
	packets := max(1, (w.length+q.pmtu-1)/q.pmtu)
	// Half of the PSN space at most may be unanswered (IBA 9.7.2).
	if op.read && r.ahead(r.max)+packets > 1<<23 {
		return false
	}
	need := mem.Access(0)
	if op.read {
		need = mem.LocalWrite
	}
	for _, s := range q.sq.sgList(r.new, int(w.numSGE)) {
		if s.Length == 0 {
			continue
		}
		if q.keys.Check(q.domain, s.LKey, s.Addr, int(s.Length), need) != mem.OK {
			q.failRequest(now, r.new, StatusLocProtErr)
			return false
		}
	}
	w.first, w.last = r.max, r.max.Add(packets-1)
	r.max = w.last.Add(1)
	r.new++
	if op.read {
		r.reads++
	}
	return true
}

// putRequest writes the packet psn of a SEND or WRITE.
func (q *QP) putRequest(now Time, w *sendWQE, frame []byte) int {
	r := &q.req
	off := uint32(r.psn.Sub(uint32(w.first))) * q.pmtu
	n := min(w.length-off, q.pmtu)
	ops := &packetOps[w.opcode]
	var op wire.Opcode
	switch isFirst, isLast := r.psn == w.first, r.psn == w.last; {
	case isFirst && isLast:
		op = ops.only
	case isFirst:
		op = ops.first
	case isLast:
		op = ops.last
	default:
		op = ops.middle
	}
	spec := op.Spec()
	last := spec.Is(wire.ClassLast)
	ack := q.wantsAck(now, last)
	b := frame[q.path.Len():]
	wire.BTH{
		Opcode: op, SE: last && w.flags&SendSolicited != 0 && sendOps[w.opcode].notify, M: true,
		PadCnt: wire.PadCnt(int(n)), PKey: wire.DefaultPKey, DestQP: q.attr.DestQPN,
		AckReq: ack, PSN: r.psn,
	}.Put(b)
	if spec.Has(wire.HasRETH) {
		wire.RETH{VA: w.remoteAddr, RKey: w.rkey, DMALen: w.length}.
			Put(b[spec.Offsets[wire.HeaderRETH]:])
	}
	if spec.Has(wire.HasImmDt) {
		wire.ImmDt{Data: w.imm}.Put(b[spec.Offsets[wire.HeaderImmDt]:])
	}
	payload := b[wire.BTHLen+int(spec.HeaderLen):]
	if q.gather(q.sq.sgList(r.cur, int(w.numSGE)), off, payload[:n]) != mem.OK {
		// The memory was good when the message began and is not any more.
		q.failRequest(now, r.cur, StatusLocProtErr)
		return 0
	}
	q.sent(r.psn.Add(1), w)
	return q.seal(frame, wire.BTHLen+int(spec.HeaderLen), n)
}

// wantsAck decides whether the packet psn asks for an ACK (IBA 9.7.5.1.2). The
// choice is the requester's: the last packet of a message asks, unless the next
// message follows at once and its end will; every ackEvery-th packet asks; so
// do the packet that closes the window and, since the first try was in vain,
// the end of a message that is sent again.
func (q *QP) wantsAck(now Time, last bool) bool {
	r := &q.req
	r.sinceAck++
	ack := r.sinceAck >= min(ackEvery, r.window/2) || r.ahead(r.psn)+1 >= r.window
	if !ack && last {
		again := r.ahead(r.psn) < r.ahead(r.sentTop)
		ack = again || !q.nextFollows(now)
	}
	if ack {
		r.sinceAck = 0
	}
	return ack
}

// ackEvery is how many packets may pass without one that asks for an ACK. An
// answer costs both hosts as much as a request.
const ackEvery = 64

// nextFollows tells whether the work request behind cur is sure to be sent.
func (q *QP) nextFollows(now Time) bool {
	r := &q.req
	next := r.cur + 1
	return (next != r.new || q.begin(now)) && !(r.failed && r.failAt == next)
}

// putReadRequest asks for what is missing of a READ from psn on.
func (q *QP) putReadRequest(w *sendWQE, frame []byte) int {
	r := &q.req
	spec := wire.RCReadRequest.Spec()
	off := uint32(r.psn.Sub(uint32(w.first))) * q.pmtu
	b := frame[q.path.Len():]
	wire.BTH{
		Opcode: wire.RCReadRequest, M: true, PKey: wire.DefaultPKey, DestQP: q.attr.DestQPN,
		AckReq: true, PSN: r.psn,
	}.Put(b)
	wire.RETH{VA: w.remoteAddr + uint64(off), RKey: w.rkey, DMALen: w.length - off}.
		Put(b[spec.Offsets[wire.HeaderRETH]:])
	q.sent(w.last.Add(1), w)
	return q.seal(frame, wire.BTHLen+int(spec.HeaderLen), 0)
}

// sent moves psn on, to the next entry when w has no more PSNs.
func (q *QP) sent(next wire.PSN, w *sendWQE) {
	r := &q.req
	if r.ahead(r.psn) < r.ahead(r.sentTop) {
		q.count.Inc(counter.Retransmits)
	} else {
		r.sentTop = next
	}
	if r.psn = next; next == w.last.Add(1) {
		r.cur++
	}
}

// seal pads the n bytes of payload behind the headers, which are headers bytes
// from the BTH on, and closes the frame.
func (q *QP) seal(frame []byte, headers int, n uint32) int {
	end := headers + int(n)
	pad := int(wire.PadCnt(int(n)))
	clear(frame[q.path.Len()+end:][:pad])
	q.ipID++
	return q.path.Seal(frame, end+pad, q.ipID)
}

// gather copies payload from the pieces of a work request, beginning off bytes
// into them.
func (q *QP) gather(list []SGE, off uint32, dst []byte) mem.Fault {
	for i := 0; len(dst) > 0; i++ {
		s := &list[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		n := min(uint32(len(dst)), s.Length-off)
		fault := q.keys.Load(q.domain, s.LKey, s.Addr+uint64(off), dst[:n], 0)
		if fault != mem.OK {
			return fault
		}
		dst, off = dst[n:], 0
	}
	return mem.OK
}

// scatter copies payload to the pieces of a work request, beginning off bytes
// into them. The pieces have room for it.
func (q *QP) scatter(list []SGE, off uint32, src []byte) mem.Fault {
	for i := 0; len(src) > 0; i++ {
		s := &list[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		n := min(uint32(len(src)), s.Length-off)
		fault := q.keys.Store(q.domain, s.LKey, s.Addr+uint64(off), src[:n], mem.LocalWrite)
		if fault != mem.OK {
			return fault
		}
		src, off = src[n:], 0
	}
	return mem.OK
}

// startAckTimer starts the local ACK timer from now.
func (q *QP) startAckTimer(now Time) {
	q.req.ackAt = 0
	if t := ackTimeout(q.attr.Timeout); t != 0 {
		q.req.ackAt = now + t
	}
}

// goBack makes p, which is answered up to but not including it, the next PSN
// to send.
func (q *QP) goBack(p wire.PSN) {
	r := &q.req
	i := q.sq.head.Load()
	for i != r.new && r.ahead(q.sq.at(i).last) < r.ahead(p) {
		i++
	}
	r.psn, r.cur, r.sinceAck = p, i, 0
}

// requestDeadline acts on the requester's timers.
func (q *QP) requestDeadline(now Time) {
	r := &q.req
	switch {
	case r.rnrWait && now >= r.rnrAt:
		r.rnrWait = false
	case !r.rnrWait && r.ackAt != 0 && now >= r.ackAt:
		q.count.Inc(counter.LocalAckTimeout)
		r.retried = false
		q.retryFrom(now, r.una)
	}
}

// retryFrom sends everything from p on again, or fails the oldest work request
// when RETRY_CNT is used up.
func (q *QP) retryFrom(now Time, p wire.PSN) {
	r := &q.req
	if r.retry == 0 {
		q.count.Inc(counter.RetryExceeded)
		q.fail(now, StatusRetryExcErr)
		return
	}
	r.retry--
	q.goBack(p)
	q.startAckTimer(now)
}

// failRequest marks a work request as one that cannot be sent. Those before it
// end first, each as it does.
func (q *QP) failRequest(now Time, at uint32, status Status) {
	q.count.Inc(counter.SendErr)
	q.req.failed, q.req.failAt, q.req.failStatus = true, at, status
	q.failWhenOldest(now)
}

// failWhenOldest fails the marked work request once it is the oldest. When it
// could not be sent again but had arrived the first time, it is complete by now
// and there is nothing to fail.
func (q *QP) failWhenOldest(now Time) {
	r := &q.req
	if !r.failed {
		return
	}
	switch past := int32(q.sq.head.Load() - r.failAt); {
	case past == 0:
		q.fail(now, r.failStatus)
	case past > 0:
		r.failed = false
	}
}

// fail completes the oldest work request with a status and ends the QP.
func (q *QP) fail(now Time, status Status) {
	i := q.sq.head.Load()
	wc := Completion{WRID: q.sq.at(i).wrID, Status: status, Time: now}
	q.sq.head.Store(i + 1)
	q.complete(q.sendCQ, &wc, true)
	q.enterError(now)
}
