package inner

import (
	"encoding/binary"

	"xroce/encap"
)

// VNetLen is the length of the header of virtio-net in bytes, without the number of buffers.
const VNetLen = 10

// Kinds of segmentation that is still to be done (VIRTIO_NET_HDR_GSO_*).
const (
	GSONone  = 0
	GSOTCPv4 = 1
	GSOTCPv6 = 4
	GSOECN   = 0x80 // with one of the above: the segments have CWR in the first one only
)

// Flags of a VNet (VIRTIO_NET_HDR_F_*).
const (
	NeedsChecksum = 1 // the transport checksum holds that of the pseudo-header alone
	ValidChecksum = 2 // somebody found it right
)

// A VNet is what Linux says beside a datagram that goes through a TAP or TUN device with
// IFF_VNET_HDR (struct virtio_net_hdr; VIRTIO 1.2, 5.1.6).
//
//	+-------+-----+---------------+---------------+---------------+---------------+
//	| flags | gso |    hdr_len    |   gso_size    |  csum_start   |  csum_offset  |
//	+-------+-----+---------------+---------------+---------------+---------------+
type VNet struct {
	Flags          uint8
	GSO            uint8
	HeaderLen      uint16 // all headers before the first byte that is cut
	GSOSize        uint16 // bytes of payload in a segment
	ChecksumStart  uint16
	ChecksumOffset uint16 // from ChecksumStart on
}

// ParseVNet reads the header, which must have VNetLen bytes. Its numbers are in the byte order
// of the machine, as those of a device of the kernel are by default.
func ParseVNet(b []byte) VNet {
	_ = b[VNetLen-1]
	return VNet{
		Flags: b[0], GSO: b[1],
		HeaderLen:      binary.NativeEndian.Uint16(b[2:]),
		GSOSize:        binary.NativeEndian.Uint16(b[4:]),
		ChecksumStart:  binary.NativeEndian.Uint16(b[6:]),
		ChecksumOffset: binary.NativeEndian.Uint16(b[8:]),
	}
}

// Put writes the header to b, which must have VNetLen bytes.
func (v VNet) Put(b []byte) {
	_ = b[VNetLen-1]
	b[0], b[1] = v.Flags, v.GSO
	binary.NativeEndian.PutUint16(b[2:], v.HeaderLen)
	binary.NativeEndian.PutUint16(b[4:], v.GSOSize)
	binary.NativeEndian.PutUint16(b[6:], v.ChecksumStart)
	binary.NativeEndian.PutUint16(b[8:], v.ChecksumOffset)
}

// A Hint is a VNet in the 32 bits of immediate data: what cannot be seen in the datagram. The
// rest of a VNet is where headers lie, which the other end sees for itself.
//
//	+-------------------------------+-------------------+-+---------+
//	|           gso_size            |         0         |C|   gso   |
//	+-------------------------------+-------------------+-+---------+
//
// gso is 0 for none, 1 for TCP of either IP, and 2 for that with ECN; C says that the checksum
// is to be completed.
type Hint uint32

const (
	hintChecksum Hint = 1 << 4
	hintTCP      Hint = 1
	hintTCPECN   Hint = 2
	hintGSOMask  Hint = 0xf
	hintShift         = 16
	hintKnown         = 0xffff<<hintShift | hintChecksum | hintGSOMask
)

// Hint makes one, 0 for a datagram that needs none.
func (v VNet) Hint() (h Hint) {
	if v.Flags&NeedsChecksum != 0 {
		h |= hintChecksum
	}
	switch v.GSO &^ GSOECN {
	case GSOTCPv4, GSOTCPv6:
		h |= hintTCP + Hint(v.GSO>>7) | Hint(v.GSOSize)<<hintShift
	}
	return h
}

// minSegment is the smallest gso_size that is taken: that of the smallest MSS of TCP (RFC 9293
// says 536 as default, Linux takes 48 and more).
const minSegment = 48

// VNet says what a hint means for a datagram, and reports whether it can: a datagram that is
// none of TCP, or UDP where it is about the checksum alone, has no such hint.
func (h Hint) VNet(k encap.Kind, b []byte) (v VNet, ok bool) {
	if h == 0 {
		return VNet{}, true
	}
	p := Parse(k, b)
	if h&^hintKnown != 0 || p.L4 == 0 || p.Fragment {
		return VNet{}, false
	}
	at, n := p.tcp(b)
	switch {
	case at != 0:
		v.ChecksumOffset = tcpChecksum
	case p.Protocol == ProtocolUDP && p.End >= p.L4+udpLen && h == hintChecksum:
		at, v.ChecksumOffset = p.L4, udpChecksum
	default:
		return VNet{}, false
	}
	if h&hintChecksum != 0 {
		v.Flags = NeedsChecksum
	}
	v.ChecksumStart = uint16(at)
	switch size := uint16(h >> hintShift); h & hintGSOMask {
	case 0:
		return v, size == 0
	case hintTCP, hintTCPECN:
		if size < minSegment || h&hintChecksum == 0 {
			return VNet{}, false
		}
		v.GSO, v.GSOSize, v.HeaderLen = GSOTCPv4, size, uint16(at+n)
		if p.Version == 6 {
			v.GSO = GSOTCPv6
		}
		if h&hintGSOMask == hintTCPECN {
			v.GSO |= GSOECN
		}
		return v, true
	}
	return VNet{}, false
}
