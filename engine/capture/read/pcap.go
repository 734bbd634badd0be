package read

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"xroce/roce/dissect"
)

// Lengths in bytes of the headers of a pcap file and of a packet of it
// (draft-ietf-opsawg-pcap).
const (
	pcapHeaderLen = 24
	pcapRecordLen = 16
	// Of the modified format a record also has the index of the interface (32 bits), the
	// EtherType (16), the type of the packet (8) and a byte of padding (libpcap sf-pcap.c,
	// pcap_sf_patched_pkthdr).
	pcapModifiedLen = pcapRecordLen + 8
)

// pcap is a classic file, or one of the modified format of A. Kuznetsov's tcpdump.
type pcap struct {
	big    bool  // its order is big-endian
	unit   int64 // nanoseconds that the fraction of a second counts
	record int   // length in bytes of the header of a packet
	link   dissect.Link
}

// word reads a number of 32 bits.
func (f *pcap) word(b []byte) uint32 {
	v := binary.LittleEndian.Uint32(b)
	if f.big {
		v = bits.ReverseBytes32(v)
	}
	return v
}

// openPcap reads the header of a classic file, whose magic number was read.
func (r *Reader) openPcap(big bool, magic uint32) error {
	b, err := r.rest(pcapHeaderLen)
	if err != nil {
		return err
	}
	f := &pcap{big: big, unit: 1000, record: pcapRecordLen}
	switch magic {
	case magicNano:
		f.unit = 1
	case magicModified:
		f.record = pcapModifiedLen
	}
	// The upper half may tell of an FCS, whose length packets have as well.
	f.link = dissect.Link(f.word(b[20:]))
	r.format = f
	return nil
}

func (f *pcap) next(r *Reader, p *Packet) error {
	b, err := r.take(f.record)
	if err != nil {
		return err
	}
	p.Link = f.link
	p.Time = int64(f.word(b))*1e9 + int64(f.word(b[4:]))*f.unit
	n, whole := f.word(b[8:]), f.word(b[12:])
	if n > MaxPacket {
		return damaged("packet %d has %d bytes", r.number+1, n)
	}
	p.Length = length(whole)
	p.Data, err = r.rest(int(n))
	return err
}

// length is the length of a packet as a file says it, or not: what was kept of it is no more
// than MaxPacket, and what cannot be is as good as not said.
func length(n uint32) int {
	if n > MaxPacket {
		return 0
	}
	return int(n)
}

// The length of the header of an ERF record in bytes, and the types of records by the first of
// which a file is taken for one of them.
const (
	erfHeaderLen  = 16
	erfTypeMask   = 0x7f // bit 7 says that more headers follow
	erfEthernet   = 2
	erfColor      = 11 // Ethernet with the class of the packet instead of a loss counter
	erfDSM        = 16 // the same with the result of a filter
	erfDSMColor   = 20
	erfInfiniBand = 21
	erfIPv4       = 22
	erfIPv6       = 23
	erfLinkPacket = 25 // of InfiniBand
	erfLast       = 48
)

// erf is a file of records of Endace, without a header of its own.
type erf struct{}

// openERF looks whether a file begins with a record of a type that has packets.
func (r *Reader) openERF() error {
	b, err := r.in.peek(erfHeaderLen)
	if err != nil {
		return ErrFormat
	}
	rlen := binary.BigEndian.Uint16(b[10:])
	if rlen < erfHeaderLen || binary.BigEndian.Uint16(b[14:]) == 0 {
		return ErrFormat
	}
	switch b[8] & erfTypeMask {
	case erfEthernet, erfColor, erfDSM, erfDSMColor, erfInfiniBand, erfIPv4, erfIPv6, erfLinkPacket:
	default:
		return ErrFormat
	}
	// A second record, if there is one, has to look like one too.
	two, err := r.in.peek(int(rlen) + erfHeaderLen)
	if err == nil {
		n := two[rlen:]
		if k := n[8] & erfTypeMask; k == 0 || k > erfLast ||
			binary.BigEndian.Uint16(n[10:]) < erfHeaderLen {
			return ErrFormat
		}
	} else if len(two) < int(rlen) && len(two) > 0 && !plausibleCut(b) {
		return ErrFormat
	}
	r.format = erf{}
	return nil
}

// plausibleCut reports whether a record of which the file lacks the end may be one: its length on
// the wire fits that in the file.
func plausibleCut(b []byte) bool {
	rlen, wlen := binary.BigEndian.Uint16(b[10:]), binary.BigEndian.Uint16(b[14:])
	return int(wlen)+erfHeaderLen <= int(rlen)+64 && int(rlen) <= int(wlen)+64
}

func (erf) next(r *Reader, p *Packet) error {
	b, err := r.take(erfHeaderLen)
	if err != nil {
		return err
	}
	rlen := int(binary.BigEndian.Uint16(b[10:]))
	if rlen < erfHeaderLen {
		return damaged("record %d has %d bytes", r.number+1, rlen)
	}
	p.Link = dissect.LinkERF
	p.Time = erfTime(b)
	p.Length = erfHeaderLen + int(binary.BigEndian.Uint16(b[14:]))
	// The header is a part of what LINKTYPE_ERF is; it is still in the buffer.
	r.bytes -= erfHeaderLen
	r.held = 0
	p.Data, err = r.rest(rlen)
	return err
}

// erfTime is the time stamp of a record in nanoseconds: seconds and a binary fraction of them, in
// little-endian order while all else is big-endian.
func erfTime(b []byte) int64 {
	t := binary.LittleEndian.Uint64(b)
	return int64(t>>32)*1e9 + int64(t&(1<<32-1)*1e9>>32)
}

// errSkip says that a block has no packet.
var errSkip = errors.New("no packet")
