package roce

import (
	"fmt"

	"xroce/roce/mem"
	"xroce/roce/wire"
)

// Attr are the attributes of a QP (struct ibv_qp_attr). Which of them a call
// sets is told by its mask.
type Attr struct {
	State           State
	CurState        State
	SQDraining      bool       // query only: in SQD and not yet drained
	Access          mem.Access // what the peer may do: REMOTE_* and FLUSH_* flags
	PKeyIndex       uint16     // 0: RoCE has one P_Key
	Port            uint8      // 1
	QKey            uint32     // of a datagram QP
	Path            wire.Path  // the address vector, resolved; SrcPort 0 lets the QP choose
	PathMTU         wire.MTU
	DestQPN         uint32
	RQPSN           wire.PSN
	SQPSN           wire.PSN
	MaxRdAtomic     uint8  // READs and atomics that we may have outstanding, 0 to MaxRdAtomic
	MaxDestRdAtomic uint8  // READs and atomics of the peer that are remembered, as above
	MinRNRTimer     uint8  // RNR timer code, 0 to 31
	Timeout         uint8  // local ACK timeout 4.096 us * 2^Timeout, 0 for none, 0 to 31
	RetryCnt        uint8  // 0 to 7
	RNRRetry        uint8  // 0 to 7, 7 is for ever
	RateLimit       uint32 // of requests, in kbit/s of frames, 0 for none
	Extensions      Extensions
}

// Modify moves the QP and sets the attributes in the mask, all or nothing. The
// error names the attribute that is missing, superfluous or out of range.
func (q *QP) Modify(now Time, a *Attr, mask AttrMask) error {
	from, to := q.State(), q.State()
	if mask&AttrState != 0 {
		to = a.State
	}
	if to >= stateCount {
		return fmt.Errorf("%w: no such state, %s", ErrInvalid, to)
	}
	if mask&AttrCurState != 0 && a.CurState != from {
		return fmt.Errorf("%w: CUR_STATE says %s, the QP is in %s", ErrState, a.CurState, from)
	}
	if err := checkMove(q.typ, from, to, mask); err != nil {
		return err
	}
	if err := a.check(mask); err != nil {
		return err
	}
	if err := q.checkNow(from, to, a, mask); err != nil {
		return err
	}
	next := q.attr
	next.take(a, mask)
	if mask&AttrAV != 0 {
		if err := q.setPath(&next); err != nil {
			return err
		}
	}
	q.apply(now, from, to, &next, mask)
	return nil
}

// checkNow tests what depends on the work that is under way.
func (q *QP) checkNow(from, to State, a *Attr, mask AttrMask) error {
	switch {
	case from == StateSQD && to == StateRTS && q.draining():
		return fmt.Errorf("%w: the send queue is still draining", ErrState)
	case mask&AttrMaxDestRdAtomic != 0 && !q.rsp.canRemember(int(a.MaxDestRdAtomic)):
		return fmt.Errorf("%w: MAX_DEST_RD_ATOMIC %d, more requests are being answered",
			ErrState, a.MaxDestRdAtomic)
	case mask&AttrExtensions != 0 && a.Extensions != 0 && q.holds == nil:
		return fmt.Errorf("%w: EXTENSIONS %s on a QP without a hold pool", ErrInvalid,
			a.Extensions)
	}
	return nil
}

// Attr returns the attributes.
func (q *QP) Attr() Attr {
	a := q.attr
	a.State, a.CurState = q.State(), q.State()
	a.SQDraining = a.State == StateSQD && q.draining()
	return a
}

// check tests the ranges of the attributes in the mask.
func (a *Attr) check(mask AttrMask) error {
	for _, c := range []struct {
		bit   AttrMask
		value uint32
		max   uint32
	}{
		{AttrPKeyIndex, uint32(a.PKeyIndex), 0},
		{AttrTimeout, uint32(a.Timeout), 31},
		{AttrRetryCnt, uint32(a.RetryCnt), 7},
		{AttrRNRRetry, uint32(a.RNRRetry), 7},
		{AttrMinRNRTimer, uint32(a.MinRNRTimer), 31},
		{AttrMaxRdAtomic, uint32(a.MaxRdAtomic), MaxRdAtomic},
		{AttrMaxDestRdAtomic, uint32(a.MaxDestRdAtomic), MaxRdAtomic},
		{AttrDestQPN, a.DestQPN, 1<<24 - 1},
		{AttrExtensions, uint32(a.Extensions), uint32(extensionsKnown)},
	} {
		if mask&c.bit != 0 && c.value > c.max {
			return fmt.Errorf("%w: %s %d is above %d", ErrInvalid, c.bit, c.value, c.max)
		}
	}
	if mask&AttrPort != 0 && a.Port != 1 {
		return fmt.Errorf("%w: PORT %d, the device has port 1", ErrInvalid, a.Port)
	}
	if mask&AttrPathMTU != 0 && a.PathMTU.Bytes() == 0 {
		return fmt.Errorf("%w: PATH_MTU code %d is not in 1..5", ErrInvalid, uint8(a.PathMTU))
	}
	return nil
}

// take copies the attributes in the mask.
func (a *Attr) take(from *Attr, mask AttrMask) {
	set := func(bit AttrMask, copyOne func()) {
		if mask&bit != 0 {
			copyOne()
		}
	}
	set(AttrAccess, func() { a.Access = from.Access })
	set(AttrPKeyIndex, func() { a.PKeyIndex = from.PKeyIndex })
	set(AttrPort, func() { a.Port = from.Port })
	set(AttrAV, func() { a.Path = from.Path })
	set(AttrPathMTU, func() { a.PathMTU = from.PathMTU })
	set(AttrDestQPN, func() { a.DestQPN = from.DestQPN })
	set(AttrRQPSN, func() { a.RQPSN = from.RQPSN.Add(0) })
	set(AttrSQPSN, func() { a.SQPSN = from.SQPSN.Add(0) })
	set(AttrMaxRdAtomic, func() { a.MaxRdAtomic = from.MaxRdAtomic })
	set(AttrMaxDestRdAtomic, func() { a.MaxDestRdAtomic = from.MaxDestRdAtomic })
	set(AttrMinRNRTimer, func() { a.MinRNRTimer = from.MinRNRTimer })
	set(AttrTimeout, func() { a.Timeout = from.Timeout })
	set(AttrRetryCnt, func() { a.RetryCnt = from.RetryCnt })
	set(AttrRNRRetry, func() { a.RNRRetry = from.RNRRetry })
	set(AttrQKey, func() { a.QKey = from.QKey })
	set(AttrRateLimit, func() { a.RateLimit = from.RateLimit })
	set(AttrExtensions, func() { a.Extensions = from.Extensions })
}

// setPath makes the header template. Both ends compute the same source port.
func (q *QP) setPath(a *Attr) error {
	if a.Path.SrcPort == 0 {
		a.Path.SrcPort = wire.SourcePort(a.Path.FlowLabel, q.num, a.DestQPN)
	}
	var t wire.Template
	if err := t.Init(a.Path); err != nil {
		return fmt.Errorf("%w: AV: %w", ErrInvalid, err)
	}
	q.path = t
	return nil
}

// apply makes a checked change.
func (q *QP) apply(now Time, from, to State, next *Attr, mask AttrMask) {
	q.traceAt(now)
	switch {
	case to == StateReset:
		q.reset()
		return
	case to == StateErr:
		if from != StateErr {
			q.rsp.fifo.clear()
			q.enterError(now)
		}
		return
	}
	// PostSend reads MaxRdAtomic: change attributes under its lock.
	q.sq.mu.Lock()
	q.attr = *next
	q.sq.mu.Unlock()
	if mask&AttrPathMTU != 0 {
		q.pmtu = uint32(next.PathMTU.Bytes())
	}
	if mask&AttrRQPSN != 0 {
		q.rsp.psn = next.RQPSN
	}
	if mask&AttrMaxDestRdAtomic != 0 {
		q.rsp.grant(next.MaxDestRdAtomic)
	}
	if mask&AttrRetryCnt != 0 {
		q.req.retry = next.RetryCnt
	}
	if mask&AttrRNRRetry != 0 {
		q.req.rnrRetry = next.RNRRetry
	}
	if mask&AttrSQPSN != 0 {
		q.req.restart(next.SQPSN)
		if q.sel != nil {
			q.sel.restart(next.SQPSN)
		}
	}
	if mask&AttrRateLimit != 0 {
		q.req.pace.SetRate(now, next.RateLimit)
		q.req.paced = false
		if q.req.ackAt != 0 {
			q.startAckTimer(now)
		}
	}
	if mask&AttrExtensions != 0 {
		q.extend(next.Extensions)
	}
	q.tellDrained = to == StateSQD && (q.tellDrained || mask&AttrEnSQDAsyncNotify != 0)
	q.setState(to)
	q.settle(now)
}

// reset forgets all work and all state of the connection, without completions.
func (q *QP) reset() {
	q.setState(StateReset)
	q.sq.clear()
	q.rq.clear()
	for _, cq := range []*CQ{q.sendCQ, q.recvCQ} {
		if cq != nil {
			cq.purge(q.num)
		}
	}
	if q.typ == TypeXRCRecv {
		q.xrcd.purge(q.num)
		q.srq = nil
	}
	if q.sel != nil {
		q.sel.clear()
		q.sel = nil
	}
	window, head := q.req.configured, q.sq.head.Load()
	q.req = requester{window: window, configured: window, cur: head, new: head}
	q.rsp = responder{sges: q.rsp.sges}
	q.lastDrop = stepAdmitted
	q.sq.mu.Lock()
	q.attr = Attr{}
	q.sq.mu.Unlock()
	q.overrun, q.fatal = false, false
	q.established, q.tellDrained, q.yielded = false, false, false
	q.starved.Store(false)
}

// draining reports whether a QP in SQD has not yet finished what it began.
func (q *QP) draining() bool { return q.sq.head.Load() != q.req.new }
