package msg

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Record, a piece of a frame: a header, payload, and zeros up to a multiple of 8 bytes.
//
//	byte  0 type (8)                      1 flags (8)
//	      2 ACTIVE: handler; FRAGMENT: operation, its low 16 bits; else zero (16)
//	      4 bytes of payload (32)
//	      8 tag; FRAGMENT: offset in the message (64)
//	     16 payload, then zeros
//
//	type        flags
//	1 EAGER     SYNC, TELL    a whole message
//	2 FRAGMENT  -             a part of a message that an RTS announced
//	3 ACTIVE    SYNC, TELL    a whole message for a handler of the peer

// RecordHeaderLen is the length of the header of a record in bytes.
const RecordHeaderLen = 16

// RecordType is the type of a record.
type RecordType uint8

// The types of records.
const (
	RecordEager    RecordType = 1 // a whole message
	RecordFragment RecordType = 2 // a part of a message that an RTS announced
	RecordActive   RecordType = 3 // a whole message for a handler

	recordTypeEnd RecordType = 4
)

// RecordFlags are flags of a record.
type RecordFlags uint8

// The flags of records.
const (
	RecordSync RecordFlags = 1 << 0 // the sender wants to be told when it is matched, by MATCHED
	RecordTell RecordFlags = 1 << 1 // and when its slot was given back, soon
)

// String returns the names of the flags that are set.
func (f RecordFlags) String() string {
	switch f {
	case RecordSync:
		return "SYNC"
	case RecordTell:
		return "TELL"
	case RecordSync | RecordTell:
		return "SYNC+TELL"
	}
	return fmt.Sprintf("0x%02x", uint8(f))
}

// recordSpecs is what there is to know of each type.
var recordSpecs = [recordTypeEnd]struct {
	name   string
	number string // name of the field Number, "" when that must be zero
	tag    string // name of the field Tag
	maxTag uint64
	flags  RecordFlags // that it may have
}{
	RecordEager:    {"EAGER", "", "tag", math.MaxUint64, RecordSync | RecordTell},
	RecordFragment: {"FRAGMENT", "id", "offset", math.MaxInt64, 0},
	RecordActive:   {"ACTIVE", "handler", "tag", math.MaxUint64, RecordSync | RecordTell},
}

// known reports whether there is such a type.
func (t RecordType) known() bool { return t > 0 && t < recordTypeEnd }

// String returns the name of the type.
func (t RecordType) String() string {
	if t.known() {
		return recordSpecs[t].name
	}
	return fmt.Sprintf("record type %d", uint8(t))
}

// RecordHeader is the header of a record.
type RecordHeader struct {
	Type   RecordType
	Flags  RecordFlags
	Number uint16 // ACTIVE: handler; FRAGMENT: low 16 bits of the ID of the operation; else 0
	Len    uint32 // bytes of payload
	Tag    uint64 // FRAGMENT: offset in the message, at most math.MaxInt64
}

// Put writes the header to b, which must have RecordHeaderLen bytes.
func (h *RecordHeader) Put(b []byte) {
	_ = b[RecordHeaderLen-1]
	be := binary.BigEndian
	b[0], b[1] = uint8(h.Type), uint8(h.Flags)
	be.PutUint16(b[2:], h.Number)
	be.PutUint32(b[4:], h.Len)
	be.PutUint64(b[8:], h.Tag)
}

// ParseRecordHeader reads the header of a record. It returns ErrShort when b has fewer than
// RecordHeaderLen bytes, ErrType when there is no such type, ErrFlags when it has not these
// flags, ErrReserved and ErrRange for a field that it has not, and an offset that is too large.
func ParseRecordHeader(b []byte) (RecordHeader, error) {
	if len(b) < RecordHeaderLen {
		return RecordHeader{}, ErrShort
	}
	be := binary.BigEndian
	h := RecordHeader{
		Type: RecordType(b[0]), Flags: RecordFlags(b[1]), Number: be.Uint16(b[2:]),
		Len: be.Uint32(b[4:]), Tag: be.Uint64(b[8:]),
	}
	if !h.Type.known() {
		return RecordHeader{}, ErrType
	}
	switch s := &recordSpecs[h.Type]; {
	case h.Flags&^s.flags != 0:
		return RecordHeader{}, ErrFlags
	case s.number == "" && h.Number != 0:
		return RecordHeader{}, ErrReserved
	case h.Tag > s.maxTag:
		return RecordHeader{}, ErrRange
	}
	return h, nil
}

// String prints the header as the decoder does.
func (h *RecordHeader) String() string {
	if !h.Type.known() {
		return h.Type.String()
	}
	s := &recordSpecs[h.Type]
	text := s.name
	if h.Flags != 0 {
		text += " flags=" + h.Flags.String()
	}
	if s.number != "" {
		text += fmt.Sprintf(" %s=%d", s.number, h.Number)
	}
	if h.Type == RecordFragment {
		return fmt.Sprintf("%s len=%d %s=%d", text, h.Len, s.tag, h.Tag)
	}
	return fmt.Sprintf("%s len=%d %s=0x%x", text, h.Len, s.tag, h.Tag)
}

// recordLen is the length of a record with so many bytes of payload, with its padding.
func recordLen(payload uint32) uint64 {
	return RecordHeaderLen + (uint64(payload)+frameAlign-1)&^(frameAlign-1)
}

// Record is a record as it lies in a frame.
type Record struct {
	RecordHeader
	Payload []byte // Len bytes in the slot: borrowed until that is released
}

// Records goes through the records of a frame. It may be kept and gone on with as long as the
// slot is not released.
type Records struct {
	rest []byte
	left uint16
	err  error
}

// Next reads the next record into r and reports whether there was one. There is none behind the
// last, and none from the first on that is wrong: Err says which of both it was.
func (it *Records) Next(r *Record) bool {
	if it.left == 0 {
		return false
	}
	h, err := ParseRecordHeader(it.rest)
	if err != nil {
		return it.fail(err)
	}
	n := recordLen(h.Len)
	if n > uint64(len(it.rest)) {
		return it.fail(ErrLength)
	}
	// Records and bytes end together.
	if (it.left == 1) != (n == uint64(len(it.rest))) {
		return it.fail(ErrRecords)
	}
	end := RecordHeaderLen + int(h.Len)
	for _, pad := range it.rest[end:n] {
		if pad != 0 {
			return it.fail(ErrReserved)
		}
	}
	r.RecordHeader, r.Payload = h, it.rest[RecordHeaderLen:end:end]
	it.rest = it.rest[n:]
	it.left--
	return true
}

// fail ends the iteration.
func (it *Records) fail(err error) bool {
	*it = Records{err: err}
	return false
}

// Err says what is wrong with the record that Next stopped at: an error of ParseRecordHeader;
// ErrLength when the record is longer than the rest of the frame, ErrRecords when the frame has
// more or fewer records than its header says, ErrReserved when padding is not zero. It is nil
// when nothing is.
func (it *Records) Err() error { return it.err }
