package engine

import (
	"encoding/binary"
	"fmt"

	"xroce/encap"
	"xroce/roce"
	"xroce/roce/wire"
)

// A NativeRoute is where a NativePort sends to: the Ethernet header, and what the headers behind
// it say. TClass, FlowLabel and Checks of the Template may be others for each datagram, by one
// caller at a time; Room must not grow.
type NativeRoute struct {
	Template encap.Template
	header   [maxEthernetHeader]byte
	n        int // length of header
}

const maxEthernetHeader = ethernetHeader + wire.MaxTags*wire.TagLen

// NewRoute makes a route to a MAC address, which may be a group's, with up to two VLAN tags, the
// outer one first. Room 0 is what the interface takes, OwnMAC is filled in. The error is
// roce.ErrInvalid, with what is wrong.
//
// Tags beyond the first count against the MTU of the interface: switches and drivers have room
// for one.
func (p *NativePort) NewRoute(
	to [6]byte, t encap.Template, tags ...wire.Tag,
) (*NativeRoute, error) {
	mac := p.device.host.Port().MAC
	switch spec := t.Format.Spec(); {
	case spec == nil || spec.Carriers&encap.Native == 0:
		return nil, fmt.Errorf("%w: %s does not travel in native packets", roce.ErrInvalid,
			t.Format)
	case to == [6]byte{} || to == mac:
		return nil, fmt.Errorf("%w: native packets to %x would reach nobody else",
			roce.ErrInvalid, to)
	case len(tags) > wire.MaxTags:
		return nil, fmt.Errorf("%w: %d VLAN tags are more than %d", roce.ErrInvalid, len(tags),
			wire.MaxTags)
	}
	r := &NativeRoute{Template: t}
	room := min(p.room(len(tags)), t.Format.Spec().Room)
	if t.Room == 0 {
		r.Template.Room = room
	}
	r.Template.OwnMAC = mac
	if err := r.Template.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", roce.ErrInvalid, err)
	}
	if r.Template.Room > room {
		return nil, fmt.Errorf("%w: room for %d bytes, the interface takes %d", roce.ErrInvalid,
			t.Room, room)
	}
	copy(r.header[:], to[:])
	copy(r.header[6:], mac[:])
	r.n = 12
	for _, tag := range tags {
		if tag.TPID != wire.TPIDCustomer && tag.TPID != wire.TPIDService {
			return nil, fmt.Errorf("%w: a VLAN tag with TPID 0x%04x", roce.ErrInvalid, tag.TPID)
		}
		tag.Put(r.header[r.n:])
		r.n += wire.TagLen
	}
	binary.BigEndian.PutUint16(r.header[r.n:], encap.EtherTypeNative)
	r.n += 2
	return r, nil
}

// room is how many bytes the interface takes behind an Ethernet header with so many tags.
func (p *NativePort) room(tags int) int {
	mtu := p.device.host.Port().MTU - wire.TagLen*max(tags-1, 0)
	return min(mtu, p.device.Link().MaxFrame-ethernetHeader-wire.TagLen*tags)
}
