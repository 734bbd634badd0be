package msg

import (
	"encoding/binary"
	"fmt"
)

// RailKey, an entry of a control message for a further rail.
//
//	byte  0 rail (8)        1 zero (24)
//	      4 rkey (32)       8 address (64)

// RailLen is the length of such an entry in bytes.
const RailLen = 16

// MaxFurtherRails is how many entries a control message may have. The rail that the message comes
// by has none: its key and address stand in the message.
const MaxFurtherRails = 5

// RailKey says how the memory that a control message names is reached by a further rail.
type RailKey struct {
	Rail uint8 // its number, as the Hello has it
	RKey uint32
	Addr uint64
}

// Put writes the entry to b, which must have RailLen bytes.
func (r *RailKey) Put(b []byte) {
	_ = b[RailLen-1]
	be := binary.BigEndian
	be.PutUint32(b, uint32(r.Rail)<<24)
	be.PutUint32(b[4:], r.RKey)
	be.PutUint64(b[8:], r.Addr)
}

// ParseRailKey reads an entry. It returns ErrShort when b has fewer than RailLen bytes, ErrReserved
// when what must be zero is not.
func ParseRailKey(b []byte) (RailKey, error) {
	if len(b) < RailLen {
		return RailKey{}, ErrShort
	}
	be := binary.BigEndian
	first := be.Uint32(b)
	if first<<8 != 0 {
		return RailKey{}, ErrReserved
	}
	return RailKey{Rail: uint8(first >> 24), RKey: be.Uint32(b[4:]), Addr: be.Uint64(b[8:])}, nil
}

// String prints the entry as the decoder does.
func (r *RailKey) String() string {
	return fmt.Sprintf("rail=%d addr=0x%x rkey=0x%x", r.Rail, r.Addr, r.RKey)
}
