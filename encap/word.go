package encap

import (
	"encoding/binary"
	"fmt"
)

// Word is the header of Ethernet over InfiniBand, as illumos (eib.h) and Wireshark have it.
// Nothing else in this package says that a packet is a segment, so raw packets and those of a
// virtual switch have it, too.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---+---+---+---+-+-+-+---------+-------------------------------+
//	|sig|ver|TCP|IP |r|F|M| segment |           segment ID          |
//	+---+---+---+---+-+-+-+---------+-------------------------------+
//
// Where a segment lies nobody has written down; here all but the last are equally long and the
// five bits count them.
type Word struct {
	Checks Checks // what is known of the checksums of the frame
	FCS    bool   // F: the FCS of Ethernet is behind the frame
	Segment
}

// WordLen is the length of a Word in bytes.
const WordLen = 4

// Checks says which checksums of the frame inside somebody found right.
type Checks uint8

// Values of Checks: one of the transport and one of IP, together.
const (
	TCPGood       Checks = 1 << 2
	UDPGood       Checks = 2 << 2
	TransportBad  Checks = 3 << 2
	IPGood        Checks = 1
	checksMask           = 0xf
	wordSignature        = 3
)

const (
	wordSigShift   = 30
	wordVerShift   = 28
	wordCheckShift = 24
	wordFCS        = 1 << 22
	wordMore       = 1 << 21
	wordIndexShift = 16

	// MaxSegments is how many segments a frame may have: as many as five bits can count.
	MaxSegments = 32
)

// Segment says which part of a frame this is. The zero Segment is a whole one.
type Segment struct {
	ID    uint16 // of the frame, one after the other at each sender
	Index uint8  // below MaxSegments
	More  bool   // it is not the last
}

// Whole reports whether the segment is all there is.
func (s Segment) Whole() bool { return s.Index == 0 && !s.More }

// ParseWord reads a word.
func ParseWord(b []byte) (Word, Reason) {
	if len(b) < WordLen {
		return Word{}, Truncated
	}
	w := binary.BigEndian.Uint32(b)
	switch {
	case w>>wordSigShift != wordSignature:
		return Word{}, BadSignature
	case w>>wordVerShift&3 != 0:
		return Word{}, BadVersion
	}
	return Word{
		Checks: Checks(w >> wordCheckShift & checksMask), FCS: w&wordFCS != 0,
		Segment: Segment{
			ID: uint16(w), Index: uint8(w >> wordIndexShift & (MaxSegments - 1)),
			More: w&wordMore != 0,
		},
	}, OK
}

// Put writes the word to b, which must have WordLen bytes.
func (w Word) Put(b []byte) {
	v := uint32(wordSignature)<<wordSigShift | uint32(w.Checks&checksMask)<<wordCheckShift |
		uint32(w.Index%MaxSegments)<<wordIndexShift | uint32(w.ID)
	if w.FCS {
		v |= wordFCS
	}
	if w.More {
		v |= wordMore
	}
	binary.BigEndian.PutUint32(b, v)
}

// String prints the word with tshark's names (eoib.*).
func (w Word) String() string {
	bit := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return fmt.Sprintf("eoib.tcp_chk=%d ip_chk=%d fcs=%d ms=%d ip_seg_offset=%d ip_seg_id=%d",
		w.Checks>>2, w.Checks&3, bit(w.FCS), bit(w.More), w.Index, w.ID)
}
