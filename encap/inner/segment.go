package inner

import (
	"encoding/binary"

	"xroce/encap"
)

// Offsets in headers of transports.
const (
	tcpSeq      = 4
	tcpFlags    = 13
	tcpChecksum = 16
	udpChecksum = 6

	flagFIN = 0x01
	flagPSH = 0x08
	flagCWR = 0x80
)

// Complete completes the checksum of a datagram whose transport checksum holds that of the
// pseudo-header alone, and reports whether it could.
func (v VNet) Complete(b []byte) bool {
	if v.Flags&NeedsChecksum == 0 {
		return true
	}
	start, at := int(v.ChecksumStart), int(v.ChecksumStart)+int(v.ChecksumOffset)
	if at+2 > len(b) {
		return false
	}
	check := Checksum(b[start:])
	if check == 0 {
		check = 0xffff // of UDP 0 is none; to TCP both are the same
	}
	binary.BigEndian.PutUint16(b[at:], check)
	return true
}

// Segments cuts a packet of TCP that the kernel left whole, as segmentation offload of a NIC
// does (kernel net/ipv4/tcp_offload.c, tcp_gso_segment).
type Segments struct {
	b        []byte
	h        Headers
	at, size int // of the headers; bytes of payload in a segment
	off      int // of the next segment in the payload
}

// Cut begins to cut. It reports whether there is something to be cut that it understands; b
// must not change until the last segment is made.
func (v VNet) Cut(k encap.Kind, b []byte) (s Segments, ok bool) {
	h := Parse(k, b)
	at, n := h.tcp(b)
	if at == 0 || h.Fragment || v.GSOSize < minSegment || v.Flags&NeedsChecksum == 0 {
		return Segments{}, false
	}
	switch v.GSO &^ GSOECN {
	case GSOTCPv4, GSOTCPv6:
		return Segments{b: b[:h.End], h: h, at: at + n, size: int(v.GSOSize)}, at+n < h.End
	}
	return Segments{}, false
}

// Longest is how long the longest of the segments is, in bytes.
func (s *Segments) Longest() int { return min(s.at+s.size, len(s.b)) }

// Next writes the next segment to dst and returns its length, 0 when there is none. dst must
// have room for the longest.
func (s *Segments) Next(dst []byte) int {
	rest := s.b[s.at+s.off:]
	if len(rest) == 0 {
		return 0
	}
	n := min(s.size, len(rest))
	first, last := s.off == 0, n == len(rest)
	dst = dst[:s.at+n]
	copy(dst, s.b[:s.at])
	copy(dst[s.at:], rest)

	ip := dst[s.h.L3:]
	if s.h.Version == 4 {
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		id := binary.BigEndian.Uint16(ip[4:])
		binary.BigEndian.PutUint16(ip[4:], id+uint16(s.off/s.size))
		binary.BigEndian.PutUint16(ip[10:], 0)
		binary.BigEndian.PutUint16(ip[10:], Checksum(ip[:s.h.L4-s.h.L3]))
	} else {
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-ipv6Len))
	}
	tcp := dst[s.h.L4:]
	seq := binary.BigEndian.Uint32(tcp[tcpSeq:])
	binary.BigEndian.PutUint32(tcp[tcpSeq:], seq+uint32(s.off))
	if !first {
		tcp[tcpFlags] &^= flagCWR
	}
	if !last {
		tcp[tcpFlags] &^= flagFIN | flagPSH
	}
	binary.BigEndian.PutUint16(tcp[tcpChecksum:], 0)
	check := ^fold(sum(tcp, s.h.pseudo(dst, len(tcp))))
	binary.BigEndian.PutUint16(tcp[tcpChecksum:], check)
	s.off += n
	return len(dst)
}
