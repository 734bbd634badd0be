package campaign

import (
	"fmt"
	"strconv"

	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

// A Frame is what a trace keeps of a frame, and of what happened to it.
type Frame struct {
	Kind        sim.Kind
	At          roce.Time
	From, To    int // nodes, see NodeOf
	FromAdapter int // of these, see AdapterOf
	ToAdapter   int
	Len         int // bytes
	Opcode      wire.Opcode
	DestQP      uint32
	PSN         wire.PSN
	AckReq      bool
	Syndrome    wire.Syndrome // of an acknowledge
}

// ReadFrame reads the fields that matter of a frame, which may be damaged.
func ReadFrame(ev *sim.Event) Frame {
	const ipv4, ipv6 = 14 + 20 + 8, 14 + 40 + 8
	f := Frame{
		Kind: ev.Kind, At: ev.At, From: NodeOf(ev.From), To: NodeOf(ev.To), Len: len(ev.Frame),
		FromAdapter: AdapterOf(ev.From), ToAdapter: AdapterOf(ev.To),
	}
	at := ipv4
	if len(ev.Frame) > 12 && ev.Frame[12] == 0x86 {
		at = ipv6
	}
	if len(ev.Frame) < at+wire.BTHLen+4 {
		return f
	}
	b := ev.Frame[at:]
	f.Opcode = wire.Opcode(b[0])
	f.DestQP = uint32(b[5])<<16 | uint32(b[6])<<8 | uint32(b[7])
	f.AckReq = b[8]&0x80 != 0
	f.PSN = wire.PSN(b[9])<<16 | wire.PSN(b[10])<<8 | wire.PSN(b[11])
	if f.Acknowledges() {
		f.Syndrome = wire.Syndrome(b[wire.BTHLen])
	}
	return f
}

// Acknowledges reports whether it is an ACK or NAK alone.
func (f *Frame) Acknowledges() bool {
	return f.Opcode == wire.RCAck || f.Opcode == wire.XRCAck
}

// String says what happened to which frame.
func (f *Frame) String() string {
	s := fmt.Sprintf("%s->%s %s %s qp 0x%06x psn 0x%06x %d bytes", place(f.From, f.FromAdapter),
		place(f.To, f.ToAdapter), f.Kind, f.Opcode, f.DestQP, f.PSN, f.Len)
	if f.Acknowledges() {
		s += " " + f.Syndrome.String()
	}
	if f.AckReq {
		s += " AckReq"
	}
	return s
}

// place names an adapter of a node: "2.1", and "2" for the first one.
func place(node, adapter int) string {
	if adapter == 0 {
		return strconv.Itoa(node)
	}
	return fmt.Sprintf("%d.%d", node, adapter)
}
