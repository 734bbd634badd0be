package encap

import (
	"encoding/binary"
	"hash/crc32"

	"xroce/roce/wire"
)

// A Packet is what came, taken apart. A receiver reuses one.
type Packet struct {
	Format Format
	Kind   Kind
	// Datagram and Tail are the datagram, or a segment of one, in one or two pieces of the
	// frame that it came in.
	Datagram, Tail []byte
	Segment        Segment

	LRH    wire.LRH // native
	GRH    wire.GRH // RawGRH
	Switch uint16   // VNIC
	Checks Checks   // EoIB, VNIC: which checksums somebody found right
	FCS    bool     // of a segment: behind the last is the FCS of the frame
}

// Len is the length of the datagram, or segment, in bytes.
func (p *Packet) Len() int { return len(p.Datagram) + len(p.Tail) }

// CopyTo copies the datagram, or segment, and returns how many bytes b had room for.
func (p *Packet) CopyTo(b []byte) int {
	n := copy(b, p.Datagram)
	return n + copy(b[n:], p.Tail)
}

// Decode reads the payload of a UD packet, or a message, of a format that travels in those. p
// borrows b. With a reason there is nothing in p.
func (p *Packet) Decode(f Format, b []byte) Reason {
	*p = Packet{Format: f}
	r := UnknownType
	switch f {
	case EoIB:
		r = p.decodeWord(b)
	case IPoIB, IPoIBConnected:
		r = p.decodeIPoIB(b)
	case VNIC:
		r = p.decodeVNIC(b)
	}
	if r == OK {
		r = p.checkDatagram()
	}
	if r != OK {
		*p = Packet{Format: f}
	}
	return r
}

// decodeWord reads a word and takes what is behind it for a frame.
func (p *Packet) decodeWord(b []byte) Reason {
	w, r := ParseWord(b)
	if r != OK {
		return r
	}
	p.Kind, p.Datagram = Ethernet, b[WordLen:]
	p.Checks, p.FCS, p.Segment = w.Checks, w.FCS, w.Segment
	return OK
}

func (p *Packet) decodeIPoIB(b []byte) Reason {
	if len(b) < IPoIBLen {
		return Truncated
	}
	if p.Kind = p.Format.Spec().kind(binary.BigEndian.Uint16(b[ipoibOffType:])); p.Kind == 0 {
		return UnknownType
	}
	p.Datagram = b[IPoIBLen:]
	return OK
}

func (p *Packet) decodeVNIC(b []byte) Reason {
	n := len(b)
	switch {
	case n < VNICLen+vnicTail:
		return Truncated
	case b[0] != 0 || b[1] != 0:
		return BadSignature
	case n%vnicAlign != 0:
		return BadLength
	}
	pad := int(b[n-1] & vnicPadMask)
	if n -= vnicTail + pad; n < VNICLen {
		return BadLength
	}
	p.Switch = binary.BigEndian.Uint16(b[vnicOffSwitch:])
	return p.decodeWord(b[vnicOffWord:n])
}

// checkDatagram looks at what was found behind the headers.
func (p *Packet) checkDatagram() Reason {
	switch {
	case p.Len() == 0:
		return TooShort
	case !p.Segment.Whole():
		return OK // when it is put together
	case p.FCS:
		if r := p.trimFCS(); r != OK {
			return r
		}
	}
	return p.Kind.check(p.byteAt(0), p.Len())
}

// fcsLen is the length of the FCS of Ethernet in bytes.
const fcsLen = 4

// trimFCS checks the FCS behind a frame and takes it off.
func (p *Packet) trimFCS() Reason {
	n := p.Len() - fcsLen
	if n < Ethernet.MinLen() {
		return TooShort
	}
	var fcs [fcsLen]byte
	for i := range fcs {
		fcs[i] = p.byteAt(n + i)
	}
	p.shorten(n)
	crc := crc32.Update(crc32.ChecksumIEEE(p.Datagram), crc32.IEEETable, p.Tail)
	if crc != binary.LittleEndian.Uint32(fcs[:]) {
		return BadFCS
	}
	p.FCS = false
	return OK
}

// byteAt is a byte of the datagram.
func (p *Packet) byteAt(i int) byte {
	if i < len(p.Datagram) {
		return p.Datagram[i]
	}
	return p.Tail[i-len(p.Datagram)]
}

// shorten leaves the first n bytes of the datagram.
func (p *Packet) shorten(n int) {
	if n <= len(p.Datagram) {
		p.Datagram, p.Tail = p.Datagram[:n:n], nil
		return
	}
	n -= len(p.Datagram)
	p.Tail = p.Tail[:n:n]
}
