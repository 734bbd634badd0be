package wire

import "fmt"

// A VLAN is the network on a link that frames belong to by their tags: by their IDs and TPIDs,
// whatever their priorities. A tag with ID 0 has a priority alone and counts for none. The zero
// VLAN is that of frames without a tag, and that of one tag of 802.1Q is its ID.
type VLAN uint32

// The inner tag of a VLAN, or the only one, is in its low half, the outer one in the high half.
const (
	vlanHalf          = 16
	vlanService  VLAN = 1 << 15 // beside an ID: of a tag of 802.1ad
	vlanHalfMask VLAN = 1<<vlanHalf - 1
)

// VLAN is that of frames with these tags.
func (t Tags) VLAN() (v VLAN) {
	for _, tag := range t {
		half := VLAN(tag.VLANID())
		if half == 0 {
			continue
		}
		if tag.TPID == TPIDService {
			half |= vlanService
		}
		v = v<<vlanHalf | half
	}
	return v
}

// Tags are those of frames of the VLAN, all with the same priority (PCP, 0 to 7).
func (v VLAN) Tags(pcp uint8) (t Tags) {
	n := 0
	for _, half := range [MaxTags]VLAN{v >> vlanHalf, v & vlanHalfMask} {
		if half == 0 {
			continue
		}
		t[n] = Tag{TPID: TPIDCustomer, TCI: VLANTag(uint16(half), pcp)}
		if half&vlanService != 0 {
			t[n].TPID = TPIDService
		}
		n++
	}
	return t
}

// NewVLAN is that of a tag with this TPID and ID.
func NewVLAN(tpid, id uint16) VLAN { return Tags{{tpid, id}}.VLAN() }

// Behind is the VLAN of frames that have the tags of another one before those of this. It is false
// for more than MaxTags.
func (v VLAN) Behind(outer VLAN) (both VLAN, ok bool) {
	switch {
	case outer == 0:
		return v, true
	case v == 0 || v > vlanHalfMask || outer > vlanHalfMask:
		return 0, false
	}
	return outer<<vlanHalf | v, true
}

// String is the IDs, the outer one first, such as 5 or 100.5. The letter s is before that of a
// tag of 802.1ad: s100.5.
func (v VLAN) String() string {
	s := ""
	if outer := v >> vlanHalf; outer != 0 {
		s = outer.String() + "."
	}
	if v&vlanService != 0 {
		s += "s"
	}
	return s + fmt.Sprint(uint16(v&vlanIDMask))
}
