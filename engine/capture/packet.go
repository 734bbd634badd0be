package capture

import "strconv"

// A Packet is a frame with what came of it. Whoever is handed one borrows it for the call.
type Packet struct {
	// At is when it passed, in nanoseconds since 1970; 0 is now.
	At         int64
	Dir        Direction
	Head, Tail []byte // the frame, in one or two pieces
	// Len is the length of the frame on the wire, in bytes; 0 for that of its pieces.
	Len int
	// Missing is how many before it were not captured, for want of room. A Writer counts
	// itself.
	Missing uint64
	Info
	// Comment is what a capture says of a packet that was read from one.
	Comment string
}

// Info says whose packet it is and what came of it. It has names and numbers of objects, and
// no key of memory.
type Info struct {
	Queue   int    // of the interface
	QPN     uint32 // our queue pair, 0 for none
	Peer    uint32 // that of the peer, 0 when it is not known
	HasWR   bool   // WRID is known
	WRID    uint64 // of the work request that it belongs to
	Verdict string // "accepted", "sent" and so on, "" when nobody judged
	Reason  string // of a packet that was dropped or refused: the name of the check
}

// wireLen is the length on the wire.
func (p *Packet) wireLen() int {
	if p.Len != 0 {
		return p.Len
	}
	return len(p.Head) + len(p.Tail)
}

// AppendComment adds what there is to say of a packet, in the form
//
//	qp 0x000011 peer 0x000012 wr 7 refused: resources
//
// It adds nothing for one that nobody judged.
func (i *Info) AppendComment(b []byte) []byte {
	if i.Verdict == "" {
		return b
	}
	if i.QPN != 0 {
		b = appendQPN(append(b, "qp 0x"...), i.QPN)
		b = append(b, ' ')
	}
	if i.Peer != 0 {
		b = appendQPN(append(b, "peer 0x"...), i.Peer)
		b = append(b, ' ')
	}
	if i.HasWR {
		b = strconv.AppendUint(append(b, "wr "...), i.WRID, 10)
		b = append(b, ' ')
	}
	b = append(b, i.Verdict...)
	if i.Reason != "" {
		b = append(append(b, ": "...), i.Reason...)
	}
	return b
}

// appendQPN adds the six digits of a QPN.
func appendQPN(b []byte, qpn uint32) []byte {
	const digits = "0123456789abcdef"
	for shift := 20; shift >= 0; shift -= 4 {
		b = append(b, digits[qpn>>shift&15])
	}
	return b
}

// maxComment is more than AppendComment adds, in bytes.
const maxComment = 128
