package wire

import "encoding/binary"

// vlanIDMask are the bits of the control information of a tag that are the VLAN ID; the
// three highest are the priority (IEEE 802.1Q 9.6).
const vlanIDMask = 1<<12 - 1

// VLANTag is the control information of a tag with a VLAN ID (1 to 4094) and a priority
// (PCP, 0 to 7); DEI is 0.
func VLANTag(id uint16, pcp uint8) uint16 { return uint16(pcp&7)<<13 | id&vlanIDMask }

// Values of Tag.TPID, which is the EtherType of a tag (IEEE 802.1Q table 9-1).
const (
	TPIDCustomer = 0x8100 // C-TAG: 802.1Q
	TPIDService  = 0x88A8 // S-TAG: 802.1ad, before that of a customer
)

// isTPID reports whether an EtherType is that of a tag.
func isTPID(etherType uint16) bool { return etherType == TPIDCustomer || etherType == TPIDService }

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

// MaxTags is how many VLAN tags a frame may have: those of a service and of a customer (QinQ).
const MaxTags = 2

// Tags are the VLAN tags of a frame, the outer one first. The zero Tag is none, and nothing
// comes behind it.
type Tags [MaxTags]Tag

// ParseTags reads the Ethernet header of a frame: its tags, the EtherType behind them, and where
// the network header begins. It returns false when the frame ends before that. Behind MaxTags
// tags the EtherType may be that of one more.
func ParseTags(frame []byte) (t Tags, etherType uint16, net int, ok bool) {
	net = ethLen
	for i := 0; ; i++ {
		if len(frame) < net {
			return Tags{}, 0, 0, false
		}
		etherType = binary.BigEndian.Uint16(frame[net-2:])
		if i == MaxTags || !isTPID(etherType) {
			return t, etherType, net, true
		}
		if len(frame) < net+TagLen {
			return Tags{}, 0, 0, false
		}
		t[i] = Tag{TPID: etherType, TCI: binary.BigEndian.Uint16(frame[net:])}
		net += TagLen
	}
}

// Len is how many bytes they take in a frame.
func (t Tags) Len() (n int) {
	for n < MaxTags && t[n] != (Tag{}) {
		n++
	}
	return n * TagLen
}

// Put writes them into the first Len bytes of b, and returns Len.
func (t Tags) Put(b []byte) int {
	n := t.Len()
	for i := range n / TagLen {
		t[i].Put(b[i*TagLen:])
	}
	return n
}

// WithPriority returns them with another priority (PCP, 0 to 7), DEI 0.
func (t Tags) WithPriority(pcp uint8) Tags {
	for i := range t.Len() / TagLen {
		t[i].TCI = VLANTag(t[i].VLANID(), pcp)
	}
	return t
}

// check reports whether each is one that frames have.
func (t Tags) check() bool {
	n := t.Len() / TagLen
	for i, tag := range t {
		if i < n && !isTPID(tag.TPID) || i >= n && tag != (Tag{}) {
			return false
		}
	}
	return true
}
