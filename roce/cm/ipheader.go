package cm

import (
	"encoding/binary"
	"net/netip"
)

// IPHeader stands before the private data of a REQ and a SIDR_REQ to a service ID
// of rdma_cm (IBA annex A11).
//
//	byte  0 major version (4), minor version (4): 0
//	      1 IP version (4), reserved (4)
//	      2 source port (16)
//	      4 source address (128), an IPv4 address in its last 32 bits
//	     20 destination address (128)

// IPHeaderLen is the length of an IPHeader in bytes.
const IPHeaderLen = 36

// IPHeader is who connects to whom. The port of the destination is in the service
// ID. Both addresses are IPv4 or both are IPv6; zones are dropped.
type IPHeader struct {
	Src netip.AddrPort
	Dst netip.Addr
}

// ParseIPHeader reads an IPHeader. It returns ErrShort when b has fewer than
// IPHeaderLen bytes and ErrIPHeader when the version is unknown.
func ParseIPHeader(b []byte) (IPHeader, error) {
	if len(b) < IPHeaderLen {
		return IPHeader{}, ErrShort
	}
	if b[0] != 0 {
		return IPHeader{}, ErrIPHeader
	}
	var src, dst netip.Addr
	switch b[1] >> 4 {
	case 4:
		src, dst = netip.AddrFrom4([4]byte(b[16:])), netip.AddrFrom4([4]byte(b[32:]))
	case 6:
		src, dst = netip.AddrFrom16([16]byte(b[4:])), netip.AddrFrom16([16]byte(b[20:]))
	default:
		return IPHeader{}, ErrIPHeader
	}
	port := binary.BigEndian.Uint16(b[2:])
	return IPHeader{Src: netip.AddrPortFrom(src, port), Dst: dst}, nil
}

// Put writes the header to b, which must have IPHeaderLen bytes.
func (h IPHeader) Put(b []byte) {
	clear(b[:IPHeaderLen])
	src := h.Src.Addr()
	if src.Is4() {
		a, d := src.As4(), h.Dst.As4()
		b[1] = 4 << 4
		copy(b[16:], a[:])
		copy(b[32:], d[:])
	} else {
		a, d := src.As16(), h.Dst.As16()
		b[1] = 6 << 4
		copy(b[4:], a[:])
		copy(b[20:], d[:])
	}
	binary.BigEndian.PutUint16(b[2:], h.Src.Port())
}
