package sim

import (
	"slices"

	"xroce/roce"
	"xroce/roce/wire"
)

// A Rule is a fault by script instead of by chance: "the third WRITE_MIDDLE to
// QP 17 is lost". Fields that are zero match anything. A rule counts the frames
// that match it in the order in which they are sent, whatever else happens to
// them; rules act before chance does.
type Rule struct {
	From, To [6]byte       // MAC addresses
	Opcodes  []wire.Opcode // any of these
	DestQP   uint32
	Nth      int // counted from 1; 0 for every one
	Times    int // how many from the Nth on, 0 for one

	// What happens; all zero: the frame is lost.
	Copies int       // it arrives so many times more
	Delay  roce.Time // it arrives so much later, and others overtake it
	Flip   int       // this bit is flipped, counted from 1 at the first bit of the frame
}

// A script is a rule that counts.
type script struct {
	Rule
	seen int
}

// match reports whether the rule acts on the frame, and counts it.
func (s *script) match(from, to [6]byte, b bth) bool {
	switch none := [6]byte{}; {
	case s.From != none && s.From != from,
		s.To != none && s.To != to,
		s.DestQP != 0 && s.DestQP != b.destQP,
		len(s.Opcodes) > 0 && !slices.Contains(s.Opcodes, b.opcode):
		return false
	}
	s.seen++
	return s.Nth == 0 || (s.seen >= s.Nth && s.seen < s.Nth+max(1, s.Times))
}

// bth is what rules look at.
type bth struct {
	opcode wire.Opcode
	destQP uint32
}

// findBTH reads the fields that rules look at, without checking anything: what
// is no RoCE v2 frame matches by chance at most.
func findBTH(frame []byte) (b bth, ok bool) {
	const ethernet, ipv4, ipv6, udp = 14, 20, 40, 8
	at := ethernet + ipv4 + udp
	if len(frame) > 12 && frame[12] == 0x86 {
		at = ethernet + ipv6 + udp
	}
	if len(frame) < at+wire.BTHLen {
		return bth{}, false
	}
	h := frame[at:]
	return bth{wire.Opcode(h[0]), uint32(h[5])<<16 | uint32(h[6])<<8 | uint32(h[7])}, true
}
