package encap

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"xroce/roce/wire"
)

// The header and the tail of a virtual switch:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|               0               |            switch             |
//	+-------------------------------+-------------------------------+
//	|                             Word                              |
//	+---------------------------------------------------------------+
//	|   frame, padding to 8 bytes less one, reserved 5, pad count 3  |
//
// The first half is what Omni-Path has before a frame (its L4 header, kernel
// Documentation/infiniband/opa_vnic.rst), and the last byte is its tail.
const (
	vnicOffSwitch = 2
	vnicOffWord   = 4
	vnicTail      = 1
	vnicAlign     = 8
	vnicPadMask   = vnicAlign - 1
)

// Bits that we have of those that are reserved in an RWH, where a foreign receiver ignores
// them: that the pad count is told, and the pad count.
const (
	rwhOffPad  = 1
	rwhPadTold = 1 << 2
	rwhPadMask = 3
)

const (
	ipoibOffType = 0
	grhIPVer     = 6
)

// A Template is what the headers say to one peer, besides what each datagram says. It is the
// caller's to fill in, then Validate looks at it. TClass, FlowLabel and Checks may be others for
// each datagram, by one caller at a time.
type Template struct {
	Format Format
	// Room is the most bytes that a packet may have, with all headers of the format: what
	// an Ethernet frame has behind its header, a path MTU, or a message. The room of a
	// virtual switch is cut to a multiple of 8, that of native packets to words and VCRC.
	Room int

	// Of native packets.
	VL, SL     uint8  // virtual lane and service level, 4 bits each
	DLID, SLID uint16 // local identifiers
	// Of raw packets behind a GRH.
	TClass     uint8
	FlowLabel  uint32 // 20 bits
	HopLimit   uint8
	SGID, DGID wire.GID

	Switch uint16 // VNIC: which virtual switch
	Checks Checks // EoIB, VNIC: which checksums were found right

	// Own are the addresses that the tunnel sends from, and OwnMAC that of its native
	// packets, zero for none: a datagram that was sent from there is refused.
	Own    []netip.Addr
	OwnMAC [6]byte
}

// Validate says which field is wrong.
func (t *Template) Validate() error {
	s := t.Format.Spec()
	switch {
	case s == nil:
		return fmt.Errorf("encap: there is no %s", t.Format)
	case t.VL > 0xf || t.SL > 0xf:
		return fmt.Errorf("encap: virtual lane %d and service level %d are to be below 16", t.VL,
			t.SL)
	case t.FlowLabel > 1<<20-1:
		return fmt.Errorf("encap: flow label 0x%x has more than 20 bits", t.FlowLabel)
	case t.Room > s.Room:
		return fmt.Errorf("encap: room for %d bytes, %s has %d at most", t.Room, t.Format, s.Room)
	}
	for _, c := range s.Codes {
		if least := c.Kind.MinLen(); t.Max(c.Kind) < least {
			return fmt.Errorf("encap: room for %d bytes is too small for %s in %s", t.Room, c.Kind,
				t.Format)
		}
	}
	return nil
}

// Max is the longest datagram of a kind in bytes that one packet has room for, 0 when the
// format does not carry any.
func (t *Template) Max(k Kind) int {
	s := t.Format.Spec()
	if s == nil || !s.Carries(k) {
		return 0
	}
	return min(t.fits(s.HeaderLen), max(s.Whole, s.Connected))
}

// fits is how many bytes have room behind a header.
func (t *Template) fits(header int) int {
	n := t.Room - header
	switch {
	case t.Format <= RawGRH:
		n = (t.Room-wire.VCRCLen)&^3 - header
	case t.Format == VNIC:
		n = t.Room&^vnicPadMask - header - vnicTail
	}
	return max(n, 0)
}

// Largest is the longest datagram of a kind in bytes that is sent, in segments where it does
// not fit one packet; 0 when the format does not carry any.
func (t *Template) Largest(k Kind) int {
	one := t.Max(k)
	s := t.Format.Spec()
	if one == 0 || s.Segmented == 0 || k != Ethernet {
		return one
	}
	return max(one, min(s.Segmented, MaxSegments*t.piece()))
}

// piece is the most bytes of a frame in a segment.
func (t *Template) piece() int { return t.fits(t.segmentHeader()) }

// segmentHeader is the length of the headers before a segment.
func (t *Template) segmentHeader() int {
	if t.Format == Raw {
		return wire.LRHLen + wire.RWHLen + WordLen
	}
	return t.Format.Spec().HeaderLen
}

// check refuses a datagram that cannot be sent in packets of this kind.
func (t *Template) check(k Kind, datagram []byte, most int) Reason {
	if !t.Format.Spec().Carries(k) {
		return NotCarried
	}
	if len(datagram) > most {
		return TooLong
	}
	if len(datagram) < k.MinLen() {
		return TooShort
	}
	if r := k.check(datagram[0], len(datagram)); r != OK {
		return r
	}
	if t.Format == RawIPv6 && ownLength(k, datagram) != len(datagram) {
		return BadLength // nothing else could tell it
	}
	return t.checkNesting(k, datagram)
}

// Put writes a packet with a datagram in it, and returns its length. frame must have Room
// bytes; a datagram that is refused leaves it alone.
func (t *Template) Put(frame []byte, k Kind, datagram []byte) (n int, r Reason) {
	if r := t.check(k, datagram, t.Max(k)); r != OK {
		return 0, r
	}
	header := t.Format.Spec().HeaderLen
	copy(frame[header:], datagram)
	return t.wrap(frame, k, header, len(datagram), Segment{}), OK
}

// Seal makes a packet around a datagram of n bytes that lies in frame already, behind as many
// bytes as the format's HeaderLen, and returns the length of the packet. frame must have Room
// bytes.
func (t *Template) Seal(frame []byte, k Kind, n int) (int, Reason) {
	header := t.Format.Spec().HeaderLen
	if n < 0 || n > t.Max(k) {
		if !t.Format.Spec().Carries(k) {
			return 0, NotCarried
		}
		return 0, TooLong
	}
	if r := t.check(k, frame[header:][:n], n); r != OK {
		return 0, r
	}
	return t.wrap(frame, k, header, n, Segment{}), OK
}

// wrap writes the headers before n bytes and what is behind them.
func (t *Template) wrap(frame []byte, k Kind, header, n int, s Segment) int {
	if t.Format <= RawGRH {
		return t.wrapNative(frame, k, header, n, s)
	}
	t.putHeader(frame, k, s)
	end := header + n
	return end + t.putTail(frame[end:], end)
}

// putHeader writes what is before a datagram in the payload of a queue pair.
func (t *Template) putHeader(b []byte, k Kind, s Segment) {
	switch t.Format {
	case EoIB:
		Word{Checks: t.Checks, Segment: s}.Put(b)
	case VNIC:
		binary.BigEndian.PutUint32(b, uint32(t.Switch))
		Word{Checks: t.Checks, Segment: s}.Put(b[vnicOffWord:])
	default:
		code, _ := t.Format.Spec().code(k)
		binary.BigEndian.PutUint32(b, uint32(code)<<16)
	}
}

// putTail writes what is behind it, when there are so many bytes before that.
func (t *Template) putTail(b []byte, before int) int {
	if t.Format != VNIC {
		return 0
	}
	pad := -(before + vnicTail) & vnicPadMask
	clear(b[:pad])
	b[pad] = byte(pad)
	return pad + vnicTail
}

// wrapNative writes the headers of a native packet, padding and VCRC.
func (t *Template) wrapNative(frame []byte, k Kind, header, n int, s Segment) int {
	end := header + n
	pad := -end & 3
	clear(frame[end:][:pad])
	lrh := wire.LRH{
		VL: t.VL, SL: t.SL, DLID: t.DLID, SLID: t.SLID, PktLen: uint16((end + pad) / 4),
	}
	code, _ := t.Format.Spec().code(k)
	rest := frame[wire.LRHLen:]
	switch t.Format {
	case Raw:
		lrh.LNH = wire.LNHRaw
		if !s.Whole() {
			code = EtherTypeSegment
			Word{Checks: t.Checks, Segment: s}.Put(rest[wire.RWHLen:])
		}
		wire.RWH{EtherType: code}.Put(rest)
		rest[rwhOffPad] = rwhPadTold | byte(pad)
	case RawIPv6:
		lrh.LNH = wire.LNHIPv6
	default:
		lrh.LNH = wire.LNHGlobal
		wire.GRH{
			IPVer: grhIPVer, TClass: t.TClass, FlowLabel: t.FlowLabel, PayLen: uint16(n),
			NxtHdr: uint8(code), HopLmt: t.HopLimit, SGID: t.SGID, DGID: t.DGID,
		}.Put(rest)
	}
	lrh.Put(frame)
	total := end + pad + wire.VCRCLen
	wire.PutVCRC(frame[:total])
	return total
}
