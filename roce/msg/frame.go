package msg

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Frame, what is in a slot of any class: a header, then records.
//
//	byte  0 epoch of the ring (32)
//	      4 sequence (32)
//	      8 bytes behind the header that are used (32)
//	     12 records (16)                 14 zero (16)
//	     16 released small slots (32)    20 released large slots (32)
//	     24 records, each a multiple of 8 bytes long

// Lengths in bytes.
const (
	FrameHeaderLen = 24
	frameAlign     = 8 // records begin at multiples of it
)

// MaxRecords is how many records a frame may have.
const MaxRecords = math.MaxUint16

// FrameHeader is the header of a frame.
type FrameHeader struct {
	Epoch         uint32 // of the ring that the slot is in
	Sequence      uint32 // frames of the connection before this one, all classes together
	Used          uint32 // bytes behind the header; a multiple of 8
	Records       uint16 // at least 1
	ReleasedSmall uint32 // small slots that the sender has given back, of all epochs
	ReleasedLarge uint32 // provisioned slots that it has given back, of all epochs
}

// Put writes the header to b, which must have FrameHeaderLen bytes.
func (h *FrameHeader) Put(b []byte) {
	_ = b[FrameHeaderLen-1]
	be := binary.BigEndian
	be.PutUint32(b, h.Epoch)
	be.PutUint32(b[4:], h.Sequence)
	be.PutUint32(b[8:], h.Used)
	be.PutUint16(b[12:], h.Records)
	be.PutUint16(b[14:], 0)
	be.PutUint32(b[16:], h.ReleasedSmall)
	be.PutUint32(b[20:], h.ReleasedLarge)
}

// String prints the header as the decoder does.
func (h *FrameHeader) String() string {
	return fmt.Sprintf("FRAME epoch=%d seq=%d used=%d records=%d released=%d large=%d",
		h.Epoch, h.Sequence, h.Used, h.Records, h.ReleasedSmall, h.ReleasedLarge)
}

// Frame is a frame whose header was read and found to fit its slot.
type Frame struct {
	FrameHeader
	records []byte // in the slot
}

// ParseFrame reads the header of the frame that was written to a slot. Give it the bytes that
// were written, as the completion tells them, so that nothing of an earlier frame is taken for a
// part of this one; or those of the whole slot. It returns ErrShort when they end inside the
// header, ErrLength when more is used than there is or not a multiple of 8, ErrRecords when there
// are no records or more than fit, ErrReserved when what must be zero is not. Epoch and
// sequence are for the caller to judge.
func ParseFrame(slot []byte) (Frame, error) {
	if len(slot) < FrameHeaderLen {
		return Frame{}, ErrShort
	}
	be := binary.BigEndian
	f := Frame{FrameHeader: FrameHeader{
		Epoch: be.Uint32(slot), Sequence: be.Uint32(slot[4:]),
		Used: be.Uint32(slot[8:]), Records: be.Uint16(slot[12:]),
		ReleasedSmall: be.Uint32(slot[16:]), ReleasedLarge: be.Uint32(slot[20:]),
	}}
	room := slot[FrameHeaderLen:]
	used, records := uint64(f.Used), uint64(f.Records)
	switch {
	case be.Uint16(slot[14:]) != 0:
		return Frame{}, ErrReserved
	case used > uint64(len(room)), used%frameAlign != 0:
		return Frame{}, ErrLength
	case records == 0, records*RecordHeaderLen > used:
		return Frame{}, ErrRecords
	}
	f.records = room[:used]
	return f, nil
}

// Iterate returns an iterator over the records of the frame, from the first.
func (f *Frame) Iterate() Records {
	return Records{rest: f.records, left: f.FrameHeader.Records}
}

// SlotLen is how long a slot has to be for a frame with one record of so many bytes of payload.
func SlotLen(payload uint32) uint64 {
	return FrameHeaderLen + recordLen(payload)
}
