package msg

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Control, a control message: one SEND.
//
//	byte  0 magic "XM" (16)          2 version (8)       3 type (8)
//	      4 flags (8)                5 class, or status (8)
//	      6 number (16)              8 ID (32)          12 rkey (32)
//	     16 address (64)            24 length (64)      32 tag (64)
//	     40 sequence (32)           44 released small slots (32)
//	     48 further rails, 16 bytes each
//
// Sequence and released slots are those of every message. Which of the others a type has and what
// they are called there says the table in controltype.go; those that it has not are zero.

// Lengths in bytes.
const (
	ControlLen    = 48 // of a control message without further rails
	MaxControlLen = ControlLen + MaxFurtherRails*RailLen
)

const controlMagic = 0x584d // "XM"

// Control is a control message.
type Control struct {
	Type     Type
	Flags    Flags
	Class    uint8  // of a ring
	Status   Status // in the place of Class: no type has both
	Number   uint16
	ID       uint32
	RKey     uint32
	Addr     uint64
	Len      uint64 // at most math.MaxInt64
	Tag      uint64
	Sequence uint32 // control messages of the connection before this one
	Released uint32 // small slots that the sender has given back, of all epochs

	// RailCount is how many of Rails there are: the same memory by further rails.
	RailCount uint8
	Rails     [MaxFurtherRails]RailKey
}

// Size is the length of the message in bytes, at most MaxControlLen.
func (c *Control) Size() int { return ControlLen + int(c.RailCount)*RailLen }

// Put writes the message to b, which must have Size bytes, and returns those.
func (c *Control) Put(b []byte) []byte {
	b = b[:c.Size()]
	be := binary.BigEndian
	be.PutUint16(b, controlMagic)
	b[2], b[3], b[4] = Version, uint8(c.Type), uint8(c.Flags)
	b[5] = c.Class | uint8(c.Status) // one of them is 0
	be.PutUint16(b[6:], c.Number)
	be.PutUint32(b[8:], c.ID)
	be.PutUint32(b[12:], c.RKey)
	be.PutUint64(b[16:], c.Addr)
	be.PutUint64(b[24:], c.Len)
	be.PutUint64(b[32:], c.Tag)
	be.PutUint32(b[40:], c.Sequence)
	be.PutUint32(b[44:], c.Released)
	for i := range c.Rails[:c.RailCount] {
		c.Rails[i].Put(b[ControlLen+i*RailLen:])
	}
	return b
}

// ParseControl reads a control message, which is all of b. It returns ErrShort when b has fewer
// than ControlLen bytes, ErrMagic, ErrVersion and ErrType when it is none that is known, ErrLength
// when the rest of b is no whole number of rails, too many, or of a type that has none, ErrFlags
// for a flag that the type does not have, ErrReserved for a field that it does not have, ErrRange
// for a value that the field cannot have, ErrRails when rails are not in rising order.
func ParseControl(b []byte) (Control, error) {
	if len(b) < ControlLen {
		return Control{}, ErrShort
	}
	be := binary.BigEndian
	t := Type(b[3])
	switch {
	case be.Uint16(b) != controlMagic:
		return Control{}, ErrMagic
	case b[2] != Version:
		return Control{}, ErrVersion
	case !t.known():
		return Control{}, ErrType
	}
	s := &specs[t]
	c := Control{
		Type: t, Flags: Flags(b[4]), Number: be.Uint16(b[6:]), ID: be.Uint32(b[8:]),
		RKey: be.Uint32(b[12:]), Addr: be.Uint64(b[16:]), Len: be.Uint64(b[24:]),
		Tag: be.Uint64(b[32:]), Sequence: be.Uint32(b[40:]), Released: be.Uint32(b[44:]),
	}
	if s.statuses != 0 {
		c.Status = Status(b[5])
	} else {
		c.Class = b[5]
	}
	if err := s.check(&c); err != nil {
		return Control{}, err
	}
	if err := c.parseRails(b[ControlLen:]); err != nil {
		return Control{}, err
	}
	return c, nil
}

// check judges the fields of a message of the type.
func (s *spec) check(c *Control) error {
	if c.Flags&^s.flags != 0 {
		return ErrFlags
	}
	var has uint // a bit a place
	for i := range s.fields {
		f := &s.fields[i]
		if !f.In(c.Flags) {
			continue
		}
		has |= 1 << f.Place
		if v := c.Value(f.Place); v < f.Min || v > f.max() {
			return ErrRange
		}
	}
	for p := range placeEnd {
		if has>>p&1 == 0 && c.Value(p) != 0 {
			return ErrReserved
		}
	}
	if s.statuses != 0 && !s.statuses.has(c.Status) {
		return ErrRange
	}
	return nil
}

// parseRails reads the entries of further rails.
func (c *Control) parseRails(b []byte) error {
	n := len(b) / RailLen
	switch {
	case len(b)%RailLen != 0, n > MaxFurtherRails:
		return ErrLength
	case n > 0 && !c.Type.Rails(c.Flags):
		return ErrLength
	}
	for i := range n {
		r, err := ParseRailKey(b[i*RailLen:])
		if err != nil {
			return err
		}
		if i > 0 && r.Rail <= c.Rails[i-1].Rail {
			return ErrRails
		}
		c.Rails[i] = r
	}
	c.RailCount = uint8(n)
	return nil
}

// Place is a field of a control message by its place, whatever a type calls it.
type Place uint8

// The places, in the order in which they stand in a message.
const (
	PlaceClass Place = iota
	PlaceStatus
	PlaceNumber
	PlaceID
	PlaceRKey
	PlaceAddr
	PlaceLen
	PlaceTag

	placeEnd
)

// placeMax is the largest value of each place. Lengths and offsets fit an int64, so that the sum
// of two does not wrap around.
var placeMax = [placeEnd]uint64{
	PlaceClass: MaxClass, PlaceStatus: math.MaxUint8, PlaceNumber: math.MaxUint16,
	PlaceID: math.MaxUint32, PlaceRKey: math.MaxUint32, PlaceAddr: math.MaxUint64,
	PlaceLen: math.MaxInt64, PlaceTag: math.MaxUint64,
}

// Value returns what stands at a place.
func (c *Control) Value(p Place) uint64 {
	switch p {
	case PlaceClass:
		return uint64(c.Class)
	case PlaceStatus:
		return uint64(c.Status)
	case PlaceNumber:
		return uint64(c.Number)
	case PlaceID:
		return uint64(c.ID)
	case PlaceRKey:
		return uint64(c.RKey)
	case PlaceAddr:
		return c.Addr
	case PlaceLen:
		return c.Len
	default:
		return c.Tag
	}
}

// String prints the message as the decoder does: its name, then its fields by their names in it.
func (c *Control) String() string {
	var b strings.Builder
	b.WriteString(c.Type.String())
	if c.Flags != 0 {
		fmt.Fprintf(&b, " flags=%s", c.Flags)
	}
	if c.Type.known() {
		for _, f := range specs[c.Type].fields {
			if f.In(c.Flags) {
				b.WriteString(" " + f.Name + "=" + c.text(&f))
			}
		}
	}
	fmt.Fprintf(&b, " seq=%d released=%d", c.Sequence, c.Released)
	for i := range c.Rails[:c.RailCount] {
		b.WriteString(" " + c.Rails[i].String())
	}
	return b.String()
}

// text prints the value of a field.
func (c *Control) text(f *Field) string {
	switch {
	case f.Place == PlaceStatus:
		return strings.ReplaceAll(c.Status.String(), " ", "_")
	case f.Hex:
		return fmt.Sprintf("0x%x", c.Value(f.Place))
	}
	return fmt.Sprint(c.Value(f.Place))
}
