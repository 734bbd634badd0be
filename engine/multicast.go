package engine

import (
	"errors"
	"fmt"
	"slices"

	"xroce/bpf"
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
	defer d.life.Unlock()
	d.attach(q, group)
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

// joinGroup has the packets of a group sent to us, or changes nothing. The caller holds
// memberships, and not the progress lock: joining waits for the kernel.
func (d *Device) joinGroup(group wire.GID) error {
	if j, ok := d.host.(host.GroupJoiner); ok {
		if err := j.Join(group.Addr()); err != nil {
			return err
		}
	}
	if d.program == nil {
		return nil
	}
	keys, err := groupKeys(group)
	for _, key := range keys {
		if err == nil {
			err = d.program.Own(key)
		}
	}
	if err != nil {
		return errors.Join(err, d.leaveGroup(group))
	}
	return nil
}

// leaveGroup ends joinGroup, or what it did of it. Nobody is in the group any more. The
// caller holds memberships.
func (d *Device) leaveGroup(group wire.GID) error {
	var errs []error
	if d.program != nil {
		keys, err := groupKeys(group)
		errs = append(errs, err)
		for _, key := range keys {
			if !d.needs(key) {
				errs = append(errs, d.program.Disown(key))
			}
		}
	}
	if j, ok := d.host.(host.GroupJoiner); ok {
		errs = append(errs, j.Leave(group.Addr()))
	}
	return errors.Join(errs...)
}

// needs reports whether a group with members has a key: groups share MAC addresses.
func (d *Device) needs(key bpf.Key) bool {
	for group := range d.groups.load() {
		// Its keys were made when it was joined.
		if keys, _ := groupKeys(group); slices.Contains(keys, key) {
			return true
		}
	}
	return false
}

// groupKeys are what the XDP program must own to let a group through: its IP
// address for RoCE v2, its MAC address for raw frames.
func groupKeys(group wire.GID) ([]bpf.Key, error) {
	key, err := bpf.AddrKey(group.Addr())
	if err != nil {
		return nil, err
	}
	return []bpf.Key{key, bpf.MACKey(group.MulticastMAC(groupFraming(group)))}, nil
}

// groupFraming is that of RoCE v2 packets to a group.
func groupFraming(group wire.GID) wire.Framing {
	if group.IsIPv4() {
		return wire.FramingV2IPv4
	}
	return wire.FramingV2IPv6
}
