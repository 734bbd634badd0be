package read

import "xroce/roce/dissect"

// Direction is which way a packet went past the interface.
type Direction uint8

// The directions of pcapng (epb_flags).
const (
	Unknown Direction = iota
	In
	Out
)

// String is "in", "out", or "" where nobody said.
func (d Direction) String() string {
	return [...]string{"", "in", "out", ""}[d&3]
}

// A Packet is one of a capture.
type Packet struct {
	Number    int   // from 1
	Time      int64 // nanoseconds since 1970, 0 where the file does not say
	Link      dissect.Link
	Interface int    // which of the file, from 0
	Data      []byte // what was kept of it; borrowed until the next call of Next
	Length    int    // bytes that it had, no fewer than Data
	Direction Direction
	Dropped   uint64 // packets that the capture lost before it, where it says so
	Comment   string // of pcapng
}
