package traffic

import (
	"encoding/binary"

	"xroce/encap"
	"xroce/roce/wire"
)

// An Opener finds the frames that are in the headers of a format of encap. One caller at a time.
type Opener struct {
	format  encap.Format
	native  bool
	packet  encap.Packet
	roce    wire.Packet
	payload []byte // of a packet
	frame   []byte // that was in it
}

// NewOpener makes an Opener for the format of this name.
func NewOpener(name string) (*Opener, error) {
	f, err := encap.ParseFormat(name)
	if err != nil {
		return nil, err
	}
	spec := f.Spec()
	if spec.Carriers&(encap.Native|encap.Datagrams) == 0 {
		return nil, badPlan("format %s is of connections, and datagrams are counted here", name)
	}
	return &Opener{
		format: f, native: spec.Carriers&encap.Native != 0, payload: make([]byte, spec.Room),
		frame: make([]byte, etherLen+wire.MaxTags*wire.TagLen+spec.Room),
	}, nil
}

// EtherType is that of the frames that it opens, 0 for those of RoCE.
func (o *Opener) EtherType() uint16 { return o.format.Spec().EtherType }

// Open returns the frame in another, which came in one or two pieces. An IP packet gets the
// Ethernet header of the frame around it. It is valid until the next call. ok is false for what
// has none, or not whole, or is damaged.
func (o *Opener) Open(head, tail []byte) (frame []byte, ok bool) {
	_, _, at, whole := wire.ParseTags(head)
	if !whole || !o.decode(head, tail, at) || !o.packet.Segment.Whole() {
		return nil, false
	}
	b := o.frame
	switch o.packet.Kind {
	case encap.Ethernet:
		return b[:o.packet.CopyTo(b)], true
	case encap.IPv4, encap.IPv6:
		etherType := uint16(typeIPv4)
		if o.packet.Kind == encap.IPv6 {
			etherType = typeIPv6
		}
		copy(b, head[:at]) // the tags, too: an answer goes the same way
		binary.BigEndian.PutUint16(b[at-2:], etherType)
		return b[:at+o.packet.CopyTo(b[at:])], true
	}
	return nil, false
}

// decode reads the headers, whose first is at a place in a frame.
func (o *Opener) decode(head, tail []byte, at int) bool {
	if o.native {
		return binary.BigEndian.Uint16(head[at-2:]) == encap.EtherTypeNative &&
			o.packet.DecodeNative(head[at:], tail) == encap.OK && o.packet.Format == o.format
	}
	p := &o.roce
	if p.Decode(head, tail) != wire.OK || !p.VerifyICRC() || p.BTH.Opcode != wire.UDSendOnly ||
		p.PayloadLen() > len(o.payload) {
		return false
	}
	return o.packet.Decode(o.format, o.payload[:p.CopyPayload(o.payload)]) == encap.OK
}
