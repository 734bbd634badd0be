package encap

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"xroce/roce/wire"
)

// maxNesting is how often a datagram may be encapsulated before it is: what has been once may
// be once more.
const maxNesting = 1

// maxTags is how many VLAN tags of a frame are looked through.
const maxTags = 4

// An outer is what an encapsulated packet looks like from outside.
type outer struct {
	payload []byte // from the LRH or the BTH on, nil when it is no such packet
	native  bool
	src     netip.Addr // of RoCE
	mac     [6]byte    // zero without an Ethernet header
}

// checkNesting refuses what was encapsulated too often, and what the tunnel sent itself.
func (t *Template) checkNesting(k Kind, datagram []byte) Reason {
	o := look(k, datagram)
	switch {
	case o.payload == nil:
		return OK
	case o.native && o.mac == t.OwnMAC && o.mac != [6]byte{},
		!o.native && slices.Contains(t.Own, o.src):
		return Own
	case nesting(&o) > maxNesting:
		return Nested
	}
	return OK
}

// Nesting is how often a datagram has been encapsulated already, counted up to two: native
// packets on Ethernet, and SENDs of RoCE whose payload begins as one of the formats does. Only
// headers are looked at, so anything that looks like such a packet counts.
func Nesting(k Kind, datagram []byte) int {
	if !k.known() {
		return 0
	}
	o := look(k, datagram)
	return nesting(&o)
}

func nesting(o *outer) int {
	n := 0
	for o.payload != nil && n <= maxNesting {
		k, inner := o.open()
		if k == 0 {
			break
		}
		n++
		if inner == nil {
			break
		}
		*o = look(k, inner)
	}
	return n
}

// look finds an encapsulated packet in a datagram.
func look(k Kind, b []byte) outer {
	switch k {
	case Ethernet:
		return lookEthernet(b)
	case IPv4:
		return lookIPv4(b)
	case IPv6:
		return lookIPv6(b)
	}
	return outer{}
}

func lookEthernet(b []byte) (o outer) {
	if len(b) < Ethernet.MinLen() {
		return outer{}
	}
	mac := [6]byte(b[6:])
	for range maxTags + 1 {
		etherType := binary.BigEndian.Uint16(b[12:])
		switch etherType {
		case EtherTypeNative:
			o = outer{payload: b[14:], native: true}
		case etherTypeRoCEv1:
			o = lookGRH(b[14:])
		case etherTypeIPv4:
			o = lookIPv4(b[14:])
		case etherTypeIPv6:
			o = lookIPv6(b[14:])
		case etherTypeVLAN, etherTypeQinQ:
			if len(b) < Ethernet.MinLen()+4 {
				return outer{}
			}
			b = b[4:]
			continue
		}
		o.mac = mac
		return o
	}
	return outer{}
}

func lookIPv4(b []byte) outer {
	if len(b) < 20 || b[0]>>4 != 4 || b[9] != protocolUDP {
		return outer{}
	}
	header := int(b[0]&0xf) * 4
	if header < 20 || header > len(b) || binary.BigEndian.Uint16(b[6:])&0x1fff != 0 {
		return outer{} // no header, or a fragment behind the first
	}
	return lookUDP(b[header:], netip.AddrFrom4([4]byte(b[12:])))
}

func lookIPv6(b []byte) outer {
	if len(b) < wire.GRHLen || b[0]>>4 != 6 || b[6] != protocolUDP {
		return outer{}
	}
	return lookUDP(b[wire.GRHLen:], netip.AddrFrom16([16]byte(b[8:])))
}

func lookGRH(b []byte) outer {
	if len(b) < wire.GRHLen || b[0]>>4 != 6 || b[6] != wire.GRHNxtHdrIBA {
		return outer{}
	}
	return outer{payload: b[wire.GRHLen:], src: netip.AddrFrom16([16]byte(b[8:])).Unmap()}
}

func lookUDP(b []byte, src netip.Addr) outer {
	const header, port = 8, 2
	if len(b) < header || binary.BigEndian.Uint16(b[port:]) != wire.UDPPort {
		return outer{}
	}
	return outer{payload: b[header:], src: src}
}

// open takes one encapsulation off. It returns no kind when there is none, and no datagram
// when it cannot be seen, because it is a part of one.
func (o *outer) open() (Kind, []byte) {
	var p Packet
	if o.native {
		if _, r := p.decodeNative(o.payload, nil); r != OK {
			return 0, nil
		}
		return p.inside()
	}
	b := o.payload
	if len(b) < wire.BTHLen+wire.ICRCLen {
		return 0, nil
	}
	spec := wire.Opcode(b[0]).Spec()
	header := wire.BTHLen + int(spec.HeaderLen)
	if !spec.Is(wire.ClassSend) || len(b) < header+wire.ICRCLen {
		return 0, nil
	}
	pad := int(b[1] >> 4 & 3)
	b = b[header : len(b)-wire.ICRCLen]
	b = b[:max(len(b)-pad, 0)]
	// A SEND that is longer than a packet begins in its first one; what it holds of the
	// datagram is enough to look at.
	for _, f := range [...]Format{EoIB, IPoIB, VNIC} {
		if p.Decode(f, b) == OK {
			return p.inside()
		}
	}
	return 0, nil
}

// inside is the datagram of a packet, nil for a part of one.
func (p *Packet) inside() (Kind, []byte) {
	if !p.Segment.Whole() {
		return p.Kind, nil
	}
	return p.Kind, p.Datagram
}
