package roce

import (
	"fmt"

	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// Modify moves the QP and sets the attributes in the mask, all or nothing. The
// error names the attribute that is missing, superfluous or out of range.
func (q *QP) Modify(now Time, a *Attr, mask AttrMask) error {
	from, to := q.State(), q.State()
	if mask&AttrState != 0 {
		to = a.State
	}
	if !to.Known() {
		return fmt.Errorf("%w: no such state, %s", ErrInvalid, to)
	}
	if mask&AttrCurState != 0 && a.CurState != from {
		return fmt.Errorf("%w: CUR_STATE says %s, the QP is in %s", ErrState, a.CurState, from)
	}
	if err := verbs.CheckTransition(q.typ, from, to, mask); err != nil {
		return err
	}
	if err := a.Check(mask); err != nil {
		return err
	}
	if err := q.checkNow(from, to, a, mask); err != nil {
		return err
	}
	next := q.attr
	next.Take(a, mask)
	if q.congestion != nil && to == StateRTR && mask&AttrCongestion == 0 {
		next.Congestion = q.congestion.config.Algorithm
	}
	if mask&AttrAV != 0 {
		if err := q.setPath(&next); err != nil {
			return err
		}
	}
	q.apply(now, from, to, &next, mask)
	return nil
}

// checkNow tests what depends on the QP: its P_Key table, and the work that is under way.
func (q *QP) checkNow(from, to State, a *Attr, mask AttrMask) error {
	switch {
	case mask&AttrPKeyIndex != 0 && int(a.PKeyIndex) >= len(q.common.PKeys):
		return fmt.Errorf("%w: %s %d is above %d", ErrInvalid, AttrPKeyIndex, a.PKeyIndex,
			len(q.common.PKeys)-1)
	case from == StateSQD && to == StateRTS && q.req.draining():
		return fmt.Errorf("%w: the send queue is still draining", ErrState)
	case mask&AttrMaxDestRdAtomic != 0 && !q.rsp.canRemember(int(a.MaxDestRdAtomic)):
		return fmt.Errorf("%w: MAX_DEST_RD_ATOMIC %d, more requests are being answered",
			ErrState, a.MaxDestRdAtomic)
	case mask&AttrExtensions != 0 && a.Extensions != 0 && q.common.EarlyPool == nil:
		return fmt.Errorf("%w: EXTENSIONS %s on a QP without an early pool", ErrInvalid,
			a.Extensions)
	case mask&AttrCongestion != 0 && a.Congestion != 0 && q.congestion == nil:
		return fmt.Errorf("%w: CONGESTION %s on a device without congestion control", ErrInvalid,
			a.Congestion)
	}
	return nil
}

// Attr returns the attributes.
func (q *QP) Attr() Attr {
	a := q.attr
	a.State, a.CurState = q.State(), q.State()
	a.SQDraining = a.State == StateSQD && q.req.draining()
	return a
}

// setPath makes the header template. Both ends compute the same source port. A path to a
// group is for datagrams alone, which name it in each (IBTA 10.5): over a connection
// whoever tells us where he is reached could have a whole network sent to.
func (q *QP) setPath(a *Attr) error {
	if a.Path.Dst.IsMulticast() || a.Path.DstMAC[0]&1 != 0 {
		return fmt.Errorf("%w: AV: %s at %x is a group, and no peer", ErrInvalid, a.Path.Dst,
			a.Path.DstMAC)
	}
	if a.Path.SrcPort == 0 {
		a.Path.SrcPort = wire.SourcePort(a.Path.FlowLabel, q.num, a.DestQPN)
	}
	path, t := a.Path, wire.Template{}
	if a.Congestion.Marks() && path.Framing != wire.FramingV1 {
		path.TClass = path.TClass&^wire.ECNMask | wire.ECT0
	}
	if err := t.Init(path); err != nil {
		return fmt.Errorf("%w: AV: %w", ErrInvalid, err)
	}
	if q.congestion != nil {
		if err := q.congestion.setPath(path); err != nil {
			return fmt.Errorf("%w: AV: %w", ErrInvalid, err)
		}
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
		q.rsp.responses.clear()
		if from != StateErr {
			q.enterError()
			q.endCall(now)
		}
		return
	}
	timeout := q.attr.Timeout
	q.setAttr(next)
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
	}
	if mask&AttrRateLimit != 0 {
		q.req.setRateLimit(now)
	}
	if next.Timeout != timeout { // who sets the same again does not put it off
		q.req.changeAckTimer(now)
	}
	if mask&AttrKeepalive != 0 {
		q.req.hear(now)
	}
	if mask&AttrExtensions != 0 {
		if next.Extensions&earlyExtensions != 0 {
			q.common.EarlyPool.Reserve()
		}
		q.req.extend(next.Extensions, q.common.EarlyPool)
		q.rsp.extend(next.Extensions, q.common.EarlyPool)
	}
	if from == StateInit && to == StateRTR && next.Extensions&earlyExtensions == 0 {
		q.rsp.tolerate(q.common.EarlyPool)
	}
	if q.congestion != nil && from == StateInit && to == StateRTR {
		q.congestion.begin(next.Congestion)
	}
	if mask&AttrSQPSN != 0 && q.congestion != nil {
		q.congestion.una = next.SQPSN
		q.req.limit(now)
	}
	q.flags.put(tellDrained, to == StateSQD &&
		(q.flags.has(tellDrained) || mask&AttrEnSQDAsyncNotify != 0))
	q.setState(to)
	q.endCall(now)
}

// reset forgets all work and all state of the connection, without completions.
func (q *QP) reset() {
	q.setState(StateReset)
	q.req.reset()
	q.rsp.reset()
	for _, cq := range []*CQ{q.req.sendCQ, q.rsp.recvCQ} {
		if cq != nil {
			cq.Purge(q.num)
		}
	}
	q.setAttr(&Attr{})
	q.lastDrop, q.overrun, q.rsp.badKey = reasonAdmitted, false, false
	q.outcome, q.wrote = received{}, 0
	q.flags = 0
}
