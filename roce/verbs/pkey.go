package verbs

import (
	"fmt"
	"slices"

	"xroce/roce/wire"
)

// MaxPKeys is how many entries a P_Key table may have, as many as with mlx5.
const MaxPKeys = 128

// The bits of a P_Key (IBA 10.9.1): which partition, and whether the member is a full one. A
// limited member talks with full ones alone.
const (
	pkeyBase = 1<<15 - 1
	PKeyFull = 1 << 15
)

// A PKeyTable has the partitions that a port is in (ports/1/pkeys of sysfs): at each index the
// P_Key, with the bit PKeyFull for a full member. It is not changed once in use.
type PKeyTable []uint16

// DefaultPKeys is the table of a RoCE port that was told nothing: the default partition.
func DefaultPKeys() PKeyTable { return PKeyTable{wire.DefaultPKey} }

// Check returns ErrInvalid for a table that is empty or too long, and one with an invalid or a
// repeated P_Key: partition 0 is none (IBA 10.9.1).
func (t PKeyTable) Check() error {
	if len(t) == 0 || len(t) > MaxPKeys {
		return fmt.Errorf("%w: a P_Key table of %d entries, expected 1 to %d", ErrInvalid, len(t),
			MaxPKeys)
	}
	for i, pkey := range t {
		if pkey&pkeyBase == 0 {
			return fmt.Errorf("%w: P_Key 0x%04x at index %d is of no partition", ErrInvalid, pkey,
				i)
		}
		if slices.Contains(t[:i], pkey) {
			return fmt.Errorf("%w: P_Key 0x%04x is twice in the table", ErrInvalid, pkey)
		}
	}
	return nil
}

// Find returns the index of the entry that a packet with a P_Key is for, that of a full member
// where there are both. ok is false when the port is not in the partition, or is a limited
// member as the sender is.
func (t PKeyTable) Find(pkey uint16) (index uint16, ok bool) {
	for i, own := range t {
		if PKeysMatch(own, pkey) && (!ok || own&PKeyFull != 0) {
			index, ok = uint16(i), true
		}
	}
	return index, ok
}

// PKeysMatch reports whether members with these P_Keys may talk (IBA 10.9.3): they are in the
// same partition, and one of them is a full member.
func PKeysMatch(a, b uint16) bool {
	return (a^b)&pkeyBase == 0 && (a|b)&PKeyFull != 0 && a&pkeyBase != 0
}
