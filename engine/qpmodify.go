package engine

import (
	"errors"
	"fmt"
	"slices"

	"xroce/roce"
	"xroce/roce/wire"
)

// This file moves and ends QPs.

// Modify moves the QP to a.State, if that is in the mask, and sets the attributes
// in the mask, all or nothing (ibv_modify_qp); a.Path comes from
// Device.ResolvePath. Connect and Start do the usual sequence of it. The error is
// roce.ErrInvalid or roce.ErrState and names the attribute that is missing,
// superfluous or out of range.
func (q *QP) Modify(a *roce.Attr, mask roce.AttrMask) error {
	if mask&roce.AttrPathMTU != 0 {
		if active := q.device().ActiveMTU(); a.PathMTU > active {
			return fmt.Errorf("%w: PATH_MTU %d is above the device's active MTU %d",
				roce.ErrInvalid, a.PathMTU.Bytes(), active.Bytes())
		}
	}
	if mask&roce.AttrPathBytes != 0 {
		if most := q.device().PathBytes(); int(a.PathBytes) > most {
			return fmt.Errorf("%w: PATH_BYTES %d is above what the device has room for, %d",
				roce.ErrInvalid, a.PathBytes, most)
		}
	}
	if mask&roce.AttrAV != 0 && a.Path.Framing == wire.FramingV1 {
		if err := q.device().wantV1(q, true); err != nil {
			return err
		}
	}
	v1, err := q.modify(a, mask)
	return errors.Join(err, q.device().wantV1(q, v1))
}

// modify is Modify, and reports whether the path of the QP is one of RoCE v1 now.
func (q *QP) modify(a *roce.Attr, mask roce.AttrMask) (v1 bool, err error) {
	queue := q.lock()
	defer queue.mu.Unlock()
	if q.closed {
		return false, ErrClosed
	}
	if mask&roce.AttrState != 0 && (a.State == roce.StateErr || a.State == roce.StateReset) {
		queue.sendOwed(q)
	}
	if err = q.core.Modify(queue.clock.Now(), a, mask); err == nil {
		q.device().followPath(q)
	}
	if mask&roce.AttrState != 0 && a.State == roce.StateReset {
		queue.noteGone()
	}
	queue.reschedule(q)
	queue.wake()
	return q.core.Attr().Path.Framing == wire.FramingV1, err
}

// Close destroys the QP (ibv_destroy_qp). Outstanding work vanishes without
// completions, and so do completions that were not polled and events that were not
// taken; what the peer still sends to it is dropped. It is idempotent, and the error is
// always nil: a QP is an io.Closer.
func (q *QP) Close() error {
	d := q.device()
	if q.Type() == roce.TypeUD {
		d.memberships.Lock()
		defer d.memberships.Unlock()
	}
	groups, handler := q.close()
	// What cannot be undone outside ends with the device.
	for _, group := range groups {
		_ = d.leaveGroup(group)
	}
	_ = d.wantV1(q, false)
	if handler {
		_ = d.steer(nil)
	}
	return nil
}

// close takes the QP out of the device. It returns the multicast groups that are
// empty then, and whether it was the handler of an EtherType.
func (q *QP) close() (empty []wire.GID, handler bool) {
	d := q.device()
	d.life.Lock()
	defer d.life.Unlock()
	queue := q.lock()
	defer queue.mu.Unlock()
	if q.closed {
		return nil, false
	}
	queue.sendOwed(q)
	q.closed = true
	queue.members--
	q.control.refs.release()
	q.control.refs.pd.release()
	for group, members := range d.groups.load() {
		if slices.Contains(members, q) && d.detach(q, group) {
			empty = append(empty, group)
		}
	}
	handler = d.removeEtherTypes(q)
	d.qps.Delete(q.core.Num())
	queue.forget(q)
	queue.countTogether(q)
	queue.noteGone()
	d.forgetPath(q)
	d.async.forget(q.control.events)
	// To RESET from any state: this cannot be refused.
	_ = q.core.Modify(queue.clock.Now(), &roce.Attr{State: roce.StateReset}, roce.AttrState)
	return empty, handler
}
