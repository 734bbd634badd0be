package capture

import "strconv"

// A Packet is a frame with what came of it. Whoever is handed one borrows it for the call.
type Packet struct {
	// At is when it passed, in nanoseconds since 1970; 0 is now, or when the packet before it did
	// that is Together with it.
	At         int64
	Together   bool // it passed in one burst with the packet before it of its queue
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
	b = i.appendWhose(b)
	if i.HasWR {
		b = append(strconv.AppendUint(b, i.WRID, 10), ' ')
	}
	return i.appendVerdict(b)
}

// appendWhose adds a comment as far as the number of the work request.
func (i *Info) appendWhose(b []byte) []byte {
	if i.QPN != 0 {
		b = append(b, "qp 0x000000 "...)
		putQPN(b[len(b)-7:], i.QPN)
	}
	if i.Peer != 0 {
		b = append(b, "peer 0x000000 "...)
		putQPN(b[len(b)-7:], i.Peer)
	}
	if i.HasWR {
		b = append(b, "wr "...)
	}
	return b
}

// appendVerdict adds what came of the packet.
func (i *Info) appendVerdict(b []byte) []byte {
	b = append(b, i.Verdict...)
	if i.Reason != "" {
		b = append(append(b, ": "...), i.Reason...)
	}
	return b
}

// putQPN writes the six digits of a QPN.
func putQPN(b []byte, qpn uint32) {
	const digits = "0123456789abcdef"
	_ = b[5]
	b[0], b[1] = digits[qpn>>20&15], digits[qpn>>16&15]
	b[2], b[3] = digits[qpn>>12&15], digits[qpn>>8&15]
	b[4], b[5] = digits[qpn>>4&15], digits[qpn&15]
}

// maxComment is more than AppendComment adds besides the verdict and the reason, in bytes.
const maxComment = 64
