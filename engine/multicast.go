package engine

import (
	"errors"
	"fmt"
	"slices"

	"xroce/engine/host"
	"xroce/roce"
	"xroce/roce/wire"
)

// AttachMulticast lets a QP of type UD receive what is sent to a multicast group
// (ibv_attach_mcast), an IPv6 or an IPv4-mapped one. The first QP of the device in
// a group has the interface join it, by IGMP or MLD. Like every datagram, one to
// the group must carry the QP's Q_Key. Datagrams that QPs of this device send to
// the group arrive here too, but not at their sender.
func (q *QP) AttachMulticast(group wire.GID) error {
	if q.Type() != roce.TypeUD {
		return fmt.Errorf("%w: multicast is for UD, the QP is of type %s", roce.ErrInvalid,
			q.Type())
	}
	if !group.IsMulticast() {
		return fmt.Errorf("%w: %s is no multicast group", roce.ErrInvalid, group)
	}
	d := q.device()
	d.memberships.Lock()
	defer d.memberships.Unlock()
	first, err := q.mayAttach(group)
	if err != nil {
		return err
	}
	if first {
		if err := d.joinGroup(group); err != nil {
			return err
		}
	}
	d.life.Lock()
	d.attach(q, group)
	d.life.Unlock()
	if !first {
		return nil
	}
	if err := d.steer(nil); err != nil {
		// It is attached: the QP was, and memberships is held.
		_, _ = q.detach(group)
		return errors.Join(err, d.leaveGroup(group))
	}
	return nil
}

// mayAttach tests whether the QP can enter the group, and reports whether it is
// the first one there.
func (q *QP) mayAttach(group wire.GID) (first bool, err error) {
	d := q.device()
	d.life.Lock()
	defer d.life.Unlock()
	members := d.groups.load()[group]
	switch {
	case q.closed:
		return false, ErrClosed
	case d.failure() != nil:
		return false, d.failure()
	case slices.Contains(members, q):
		return false, fmt.Errorf("%w: the QP is attached to %s", roce.ErrInvalid, group)
	}
	return len(members) == 0, nil
}

// DetachMulticast ends AttachMulticast (ibv_detach_mcast). Close of the QP does it
// too. An error that is not roce.ErrInvalid says that the interface could not
// leave the group; the QP is detached nevertheless.
func (q *QP) DetachMulticast(group wire.GID) error {
	d := q.device()
	d.memberships.Lock()
	defer d.memberships.Unlock()
	empty, err := q.detach(group)
	if err != nil || !empty {
		return err
	}
	return d.leaveGroup(group)
}

// detach takes the QP out of a group and reports whether it is empty then.
func (q *QP) detach(group wire.GID) (empty bool, err error) {
	d := q.device()
	d.life.Lock()
	defer d.life.Unlock()
	if !slices.Contains(d.groups.load()[group], q) {
		return false, fmt.Errorf("%w: the QP is not attached to %s", roce.ErrInvalid, group)
	}
	return d.detach(q, group), nil
}

// attach puts a QP into a group. The caller holds life.
func (d *Device) attach(qp *QP, group wire.GID) {
	d.groups.set(group, append(slices.Clone(d.groups.load()[group]), qp))
}

// detach takes a QP out of a group that it is in, and reports whether nobody is
// left in it. The caller holds life.
func (d *Device) detach(qp *QP, group wire.GID) (empty bool) {
	members := slices.Clone(d.groups.load()[group])
	members = slices.DeleteFunc(members, func(m *QP) bool { return m == qp })
	if len(members) > 0 {
		d.groups.set(group, members)
		return false
	}
	d.groups.remove(group)
	return true
}

// joinGroup has the packets of a group sent to the interface, or changes nothing. The
// caller holds memberships, and not the progress lock: joining waits for the kernel.
func (d *Device) joinGroup(group wire.GID) error {
	if j, ok := d.host.(host.GroupJoiner); ok {
		if err := j.Join(group.Addr()); err != nil {
			return err
		}
	}
	return nil
}

// leaveGroup ends joinGroup, and has the XDP program leave the group to the kernel. Nobody
// is in it any more. The caller holds memberships.
func (d *Device) leaveGroup(group wire.GID) error {
	var errs []error
	errs = append(errs, d.steer(nil))
	if j, ok := d.host.(host.GroupJoiner); ok {
		errs = append(errs, j.Leave(group.Addr()))
	}
	return errors.Join(errs...)
}
