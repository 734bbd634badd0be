package wire

import "encoding/binary"

// vlanIDMask are the bits of 802.1Q control information that are the VLAN ID; the
// three highest are the priority (IEEE 802.1Q 9.6).
const vlanIDMask = 1<<12 - 1

// VLANTag is the 802.1Q control information of a VLAN (1 to 4094) and a priority
// (PCP, 0 to 7); DEI is 0.
func VLANTag(id uint16, pcp uint8) uint16 { return uint16(pcp&7)<<13 | id&vlanIDMask }

// Values of Tag.TPID, which is the EtherType of a tag (IEEE 802.1Q table 9-1).
const (
	TPIDCustomer = 0x8100 // C-TAG: 802.1Q
	TPIDService  = 0x88A8 // S-TAG: 802.1ad, before that of a customer
)

// A Tag is a VLAN tag of an Ethernet frame. The zero Tag is none.
type Tag struct {
	TPID uint16 // TPIDCustomer or TPIDService
	TCI  uint16 // control information: priority, DEI and, low 12 bits, VLAN ID
}

// TagLen is the length of a VLAN tag in bytes.
const TagLen = vlanLen

// VLANID is the VLAN of a tag, 0 for one that has only a priority.
func (t Tag) VLANID() uint16 { return t.TCI & vlanIDMask }

// Put writes the tag into the first TagLen bytes of b.
func (t Tag) Put(b []byte) {
	binary.BigEndian.PutUint16(b, t.TPID)
	binary.BigEndian.PutUint16(b[2:], t.TCI)
}

// ParseTag reads the first TagLen bytes of b as a tag. It returns false when they are none.
func ParseTag(b []byte) (t Tag, ok bool) {
	if len(b) < TagLen {
		return Tag{}, false
	}
	t = Tag{TPID: binary.BigEndian.Uint16(b), TCI: binary.BigEndian.Uint16(b[2:])}
	if t.TPID != TPIDCustomer && t.TPID != TPIDService {
		return Tag{}, false
	}
	return t, true
}

// VLANID is the VLAN of the packet, 0 for none. A tag that only has a priority
// (VLAN ID 0) is none.
func (p *Packet) VLANID() uint16 {
	if !p.Tagged {
		return 0
	}
	return p.VLAN & vlanIDMask
}

// VLANID is the VLAN of the path, 0 for none.
func (p *Path) VLANID() uint16 {
	if !p.Tagged {
		return 0
	}
	return p.VLAN & vlanIDMask
}

// FrameSource reads where a frame says that it comes from: the source GID, as of
// Packet.Src, and the VLAN ID, 0 for none. Of the frame it reads as much as that
// takes; ok is false when it is too short or no RoCE frame by its EtherType.
func FrameSource(frame []byte) (src GID, vlan uint16, ok bool) {
	if len(frame) < ethLen {
		return GID{}, 0, false
	}
	net := ethLen
	etherType := binary.BigEndian.Uint16(frame[12:])
	if etherType == etherTypeVLAN {
		if len(frame) < ethLen+vlanLen {
			return GID{}, 0, false
		}
		vlan = binary.BigEndian.Uint16(frame[14:]) & vlanIDMask
		etherType = binary.BigEndian.Uint16(frame[16:])
		net += vlanLen
	}
	h := frame[net:]
	switch etherType {
	case etherTypeIPv4:
		if len(h) < ipv4Len {
			return GID{}, 0, false
		}
		src.setIPv4((*[4]byte)(h[12:]))
	case etherTypeIPv6, EtherTypeV1: // both have the layout of a GRH
		if len(h) < GRHLen {
			return GID{}, 0, false
		}
		src = GID(h[grhOffSGID:])
	default:
		return GID{}, 0, false
	}
	return src, vlan, true
}
