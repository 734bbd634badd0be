package ipoib

import (
	"encoding/binary"
	"net/netip"
)

// ARPLen is the length of an ARP packet with hardware addresses of IPoIB and IPv4 ones.
const ARPLen = 8 + 2*(AddressLen+ipv4Len)

// HardwareType is that of InfiniBand in ARP and DHCP (RFC 4391 section 9.4, RFC 4390).
const HardwareType = 32

// Operations of ARP.
const (
	ARPRequest    = 1 // RFC 826
	ARPReply      = 2
	RARPRequest   = 3 // RFC 903
	RARPReply     = 4
	InARPRequest  = 8 // RFC 2390
	InARPReply    = 9
	protocolIPv4  = 0x0800
	ipv4Len       = 4
	arpOffOp      = 6
	arpOffSender  = 8
	arpOffTarget  = arpOffSender + AddressLen + ipv4Len
	arpHardwareAt = 0
	arpProtocolAt = 2
)

// An ARP packet, of InARP and RARP too, which have the same layout:
//
//	byte 0  hardware type 32   2 protocol 0x0800   4 lengths 20 and 4
//	     6  operation          8 sender's hardware address (20), IP address
//	    32  target's hardware address (20), IP address
type ARP struct {
	Op                 uint16
	Sender, Target     Address    // Target is zero where it is asked for
	SenderIP, TargetIP netip.Addr // IPv4
}

// Put writes the packet into the first ARPLen bytes of b. An address that is not IPv4 is written
// as zeros.
func (a *ARP) Put(b []byte) {
	be := binary.BigEndian
	be.PutUint16(b[arpHardwareAt:], HardwareType)
	be.PutUint16(b[arpProtocolAt:], protocolIPv4)
	b[4], b[5] = AddressLen, ipv4Len
	be.PutUint16(b[arpOffOp:], a.Op)
	for _, p := range []struct {
		at int
		hw Address
		ip netip.Addr
	}{{arpOffSender, a.Sender, a.SenderIP}, {arpOffTarget, a.Target, a.TargetIP}} {
		p.hw.Put(b[p.at:])
		ip := [ipv4Len]byte{}
		if p.ip.Unmap().Is4() {
			ip = p.ip.Unmap().As4()
		}
		copy(b[p.at+AddressLen:ARPLen], ip[:])
	}
}

// ParseARP reads a packet; what is behind it is ignored, as padding. It returns ErrShort, or
// ErrFormat for other hardware or protocol addresses. The operation is not looked at.
func ParseARP(b []byte) (ARP, error) {
	be := binary.BigEndian
	switch {
	case len(b) < ARPLen:
		return ARP{}, ErrShort
	case be.Uint16(b[arpHardwareAt:]) != HardwareType,
		be.Uint16(b[arpProtocolAt:]) != protocolIPv4, b[4] != AddressLen, b[5] != ipv4Len:
		return ARP{}, ErrFormat
	}
	a := ARP{Op: be.Uint16(b[arpOffOp:])}
	// There is room for both, so these cannot be refused.
	a.Sender, _ = ParseAddress(b[arpOffSender:])
	a.Target, _ = ParseAddress(b[arpOffTarget:])
	a.SenderIP = netip.AddrFrom4([ipv4Len]byte(b[arpOffSender+AddressLen:]))
	a.TargetIP = netip.AddrFrom4([ipv4Len]byte(b[arpOffTarget+AddressLen:]))
	return a, nil
}
