package engine

import (
	"fmt"
	"net/netip"
	"slices"

	"xroce/bpf"
	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// A GroupJoiner is a Host that can have the frames of a multicast group sent to
// its interface. Simulated hosts get all frames anyway.
type GroupJoiner interface {
	// Join subscribes to a group. The last Leave ends it, as many as there were
	// Joins.
	Join(group netip.Addr) error
	Leave(group netip.Addr) error
}

// AttachMulticast lets a datagram QP receive what is sent to a multicast group
// (ibv_attach_mcast). Like every datagram it must carry the QP's Q_Key. What QPs
// of this device send to the group arrives too, but not at the sender itself.
func (q *QP) AttachMulticast(group wire.GID) error {
	if q.machine.Type() != roce.TypeUD {
		return fmt.Errorf("%w: multicast is for UD, the QP is of type %s", roce.ErrInvalid,
			q.machine.Type())
	}
	if !group.IsMulticast() {
		return fmt.Errorf("%w: %s is no multicast group", roce.ErrInvalid, group)
	}
	d := q.device
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	members := d.queue.groups[group]
	switch {
	case q.closed:
		return errClosed
	case slices.Contains(members, q):
		return fmt.Errorf("%w: the QP is attached to %s", roce.ErrInvalid, group)
	}
	if len(members) == 0 {
		if err := d.own(group); err != nil {
			return err
		}
	}
	if d.queue.groups == nil {
		d.queue.groups = map[wire.GID][]*QP{}
	}
	d.queue.groups[group] = append(members, q)
	return nil
}

// DetachMulticast ends AttachMulticast (ibv_detach_mcast).
func (q *QP) DetachMulticast(group wire.GID) error {
	d := q.device
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	if !slices.Contains(d.queue.groups[group], q) {
		return fmt.Errorf("%w: the QP is not attached to %s", roce.ErrInvalid, group)
	}
	return d.detach(q, group)
}

// detach takes a QP out of a group. The caller holds the progress lock.
func (d *Device) detach(q *QP, group wire.GID) error {
	members := slices.DeleteFunc(d.queue.groups[group], func(m *QP) bool { return m == q })
	if len(members) > 0 {
		d.queue.groups[group] = members
		return nil
	}
	delete(d.queue.groups, group)
	return d.disown(group)
}

// detachAll takes a QP out of all its groups. What cannot be undone outside is
// undone when the device closes.
func (d *Device) detachAll(q *QP) {
	for group, members := range d.queue.groups {
		if slices.Contains(members, q) {
			_ = d.detach(q, group)
		}
	}
}

// own has the packets of a group sent to us.
func (d *Device) own(group wire.GID) error {
	keys, err := groupKeys(group)
	if err != nil {
		return err
	}
	if j, ok := d.host.(GroupJoiner); ok {
		if err := j.Join(group.Addr()); err != nil {
			return err
		}
	}
	if d.program == nil {
		return nil
	}
	for _, key := range keys {
		if err := d.program.Own(key); err != nil {
			return err
		}
	}
	return nil
}

// disown ends own.
func (d *Device) disown(group wire.GID) error {
	keys, err := groupKeys(group)
	if err != nil {
		return err
	}
	if d.program != nil {
		for _, key := range keys {
			if err := d.program.Disown(key); err != nil {
				return err
			}
		}
	}
	if j, ok := d.host.(GroupJoiner); ok {
		return j.Leave(group.Addr())
	}
	return nil
}

// demuxMulticast hands a packet to every member of its group but the sender.
func (q *queue) demuxMulticast(now roce.Time, p *wire.Packet) {
	members := q.groups[p.Dst]
	if len(members) == 0 || p.Spec.Service != wire.ServiceUD {
		q.count.Inc(counter.DropMulticast)
		return
	}
	sender := p.DETH().SrcQP
	for _, qp := range members {
		if p.SrcMAC == q.own.mac && qp.machine.Num() == sender {
			continue
		}
		qp.machine.HandlePacket(now, p)
		q.touched(qp)
	}
}

// groupKeys are what the XDP program must own to let a group through.
func groupKeys(group wire.GID) ([]bpf.Key, error) {
	key, err := bpf.AddrKey(group.Addr())
	if err != nil {
		return nil, err
	}
	return []bpf.Key{key, bpf.MACKey(group.MulticastMAC(framingOf(group)))}, nil
}
