package msg

import "fmt"

// Immediate is the immediate data of a frame: it names the slot that the frame was written to.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------+-----------------------+-------------------------------+
//	| Class | Epoch, low 12 bits    | Slot                          |
//	+-------+-----------------------+-------------------------------+
//
// Every value of 32 bits is one; whether there is such a ring and slot is known to their owner.
type Immediate struct {
	Class uint8  // 0 the small slots, 1 to MaxClass provisioned ones
	Epoch uint16 // low 12 bits of the epoch of the ring
	Slot  uint16
}

// MaxClass is the largest class.
const MaxClass = 15

// epochMask is what an immediate has of an epoch.
const epochMask = 1<<12 - 1

// ImmediateOf names a slot of the ring of a class and an epoch. The class is at most MaxClass.
func ImmediateOf(class uint8, epoch uint32, slot uint16) Immediate {
	return Immediate{Class: class, Epoch: uint16(epoch & epochMask), Slot: slot}
}

// ParseImmediate reads an immediate from the value of a completion.
func ParseImmediate(v uint32) Immediate {
	return ImmediateOf(uint8(v>>28), v>>16, uint16(v))
}

// Uint32 is the immediate as the value of a work request.
func (i Immediate) Uint32() uint32 {
	return uint32(i.Class)<<28 | uint32(i.Epoch&epochMask)<<16 | uint32(i.Slot)
}

// OfEpoch reports whether the immediate may be of a ring of this epoch: whether the bits that it
// has of the epoch are the same. All of the epoch stands in the frame.
func (i Immediate) OfEpoch(epoch uint32) bool { return uint32(i.Epoch) == epoch&epochMask }

// String prints the immediate as the decoder does.
func (i Immediate) String() string {
	return fmt.Sprintf("class=%d epoch=0x%03x slot=%d", i.Class, i.Epoch, i.Slot)
}
