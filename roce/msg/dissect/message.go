package dissect

import (
	"fmt"
	"strings"

	"xroce/roce/cm"
	"xroce/roce/msg"
	"xroce/roce/wire"
)

// Kind is what a Message is.
type Kind uint8

// The kinds.
const (
	Hello        Kind = iota + 1 // in a REQ, a REP or a REJ
	Control                      // a SEND with a control message
	Frame                        // a WRITE WITH IMMEDIATE with a frame
	Read                         // a READ is asked for
	ReadResponse                 // the last packet of its answer
	Write                        // a WRITE: of a rendezvous, or of nothing, to ask who is there
)

// maxRecords is how many records of a frame a Message lists.
const maxRecords = 64

// Message is something that is said in the protocol of messages. It has the fields of its kind;
// the others are zero.
type Message struct {
	Kind     Kind
	Src, Dst wire.GID
	DestQP   uint32
	Perhaps  bool  // no hello was there: what it says fits, and that is all
	Again    bool  // it was sent before, or what was sent before it came later
	Err      error // why what came cannot be read: ErrCut, or an error of package msg

	Manager     cm.Attribute // of Hello
	QPN         uint32       // of Hello, its sender's, 0 in a REJ
	StartingPSN wire.PSN     // of Hello, the first that its sender expects
	Hello       msg.Hello

	Control msg.Control

	Immediate msg.Immediate      // of Frame
	Frame     msg.FrameHeader    // of Frame
	Records   []msg.RecordHeader // of Frame, no more than the first 64
	Count     int                // of Frame: how many there are

	Addr  uint64 // of Frame, Read and Write
	RKey  uint32 // of the same
	Len   uint64 // bytes of payload; of Read those that are asked for
	ID    uint32 // of Read and Write: the operation that named the memory
	Known bool   // ID is meant
}

// String prints a line: names and values, the names of control messages those of the table in
// package msg.
func (m *Message) String() string {
	var b strings.Builder
	if m.Perhaps {
		b.WriteString("perhaps ")
	}
	switch m.Kind {
	case Hello:
		fmt.Fprintf(&b, "%s", m.Manager)
		if m.Manager != cm.AttributeREJ {
			fmt.Fprintf(&b, " qpn=0x%06x", m.QPN)
		}
		b.WriteString(" " + m.Hello.String())
	case Control:
		if m.Err != nil {
			fmt.Fprintf(&b, "SEND len=%d", m.Len)
		} else {
			b.WriteString(m.Control.String())
		}
	case Frame:
		m.printFrame(&b)
	case Read, Write:
		name := "READ"
		if m.Kind == Write {
			name = "WRITE"
		}
		b.WriteString(name)
		if m.Known {
			fmt.Fprintf(&b, " id=%d", m.ID)
		}
		fmt.Fprintf(&b, " len=%d addr=0x%x rkey=0x%x", m.Len, m.Addr, m.RKey)
	case ReadResponse:
		fmt.Fprintf(&b, "READ_RESPONSE len=%d", m.Len)
	}
	if m.Err != nil {
		fmt.Fprintf(&b, ": %s", m.Err)
	}
	if m.Again {
		b.WriteString(" (again)")
	}
	return b.String()
}

// shownRecords is how many records a line has.
const shownRecords = 4

// printFrame prints a frame with its first records.
func (m *Message) printFrame(b *strings.Builder) {
	if m.Err != nil && m.Count == 0 {
		fmt.Fprintf(b, "FRAME len=%d", m.Len)
		return
	}
	// The epoch of the immediate is a part of that of the frame.
	fmt.Fprintf(b, "%s class=%d slot=%d", m.Frame.String(), m.Immediate.Class, m.Immediate.Slot)
	for i := range m.Records[:min(len(m.Records), shownRecords)] {
		b.WriteString("; " + m.Records[i].String())
	}
	if more := m.Count - shownRecords; more > 0 {
		fmt.Fprintf(b, "; and %d more", more)
	}
}
