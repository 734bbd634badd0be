package wire

import "encoding/binary"

// Packet is one decoded RoCE packet. It borrows the frame it was decoded from:
// it is valid as long as that frame is, until the next Decode. A receiver keeps
// one Packet and uses it again for every frame. Only what Decode accepted is
// meaningful, but no method panics on anything else, the zero Packet included.
//
// A Packet may be read by several goroutines, not decoded into.
type Packet struct {
	Framing  Framing
	TClass   uint8 // IPv4 TOS or traffic class; the low two bits are ECN
	HopLimit uint8 // IPv4 TTL or hop limit

	Tags Tags // VLAN tags, those of priority alone, too

	SrcMAC, DstMAC [6]byte // zero for native packets
	Src, Dst       GID     // network addresses as GIDs; zero for native local packets
	FlowLabel      uint32  // of IPv6 or GRH
	SrcPort        uint16  // UDP source port; zero without UDP
	IPID           uint16  // IPv4 identification

	LRH  LRH // of native packets
	BTH  BTH
	Spec *OpcodeSpec // row of BTH.Opcode

	// Payload and PayloadTail are the payload without padding, in two pieces
	// when the frame was in two.
	Payload, PayloadTail []byte

	head, tail []byte // the frame
	net        int    // offset of the network header
	bth        int    // offset of the BTH
	end        int    // offset behind the ICRC

	delivered [GRHLen]byte // what GRH and OrigData return
}

// PayloadLen is the number of bytes of payload, without padding.
func (p *Packet) PayloadLen() int { return len(p.Payload) + len(p.PayloadTail) }

// TransportLen is the number of bytes from the BTH through the ICRC, 0 when
// nothing was decoded.
func (p *Packet) TransportLen() int {
	if p.Spec == nil {
		return 0
	}
	return p.end - p.bth
}

// NetworkLen is the number of bytes from the network header (IPv4, IPv6, GRH or
// LRH) through the ICRC, 0 when nothing was decoded.
func (p *Packet) NetworkLen() int {
	if p.Spec == nil {
		return 0
	}
	return p.end - p.net
}

// CopyPayload copies the payload to dst and returns how many bytes fitted.
func (p *Packet) CopyPayload(dst []byte) int {
	n := copy(dst, p.Payload)
	return n + copy(dst[n:], p.PayloadTail)
}

// header is the bytes from extended header h on, nil when the packet has none.
func (p *Packet) header(h Header) []byte {
	if p.Spec == nil {
		return nil
	}
	off := int(p.Spec.Offsets[h])
	if off == 0 || p.bth+off > len(p.head) {
		return nil
	}
	return p.head[p.bth+off:]
}

// The accessors of the extended headers. Each is meaningful when Spec.Headers
// has the header; the result is zero otherwise.

// RETH is the RDMA extended header.
func (p *Packet) RETH() RETH { h, _ := ParseRETH(p.header(HeaderRETH)); return h }

// AETH is the ACK extended header.
func (p *Packet) AETH() AETH { h, _ := ParseAETH(p.header(HeaderAETH)); return h }

// AtomicETH is the atomic extended header.
func (p *Packet) AtomicETH() AtomicETH {
	h, _ := ParseAtomicETH(p.header(HeaderAtomicETH))
	return h
}

// AtomicAckETH is the atomic acknowledge extended header.
func (p *Packet) AtomicAckETH() AtomicAckETH {
	h, _ := ParseAtomicAckETH(p.header(HeaderAtomicAckETH))
	return h
}

// ImmDt is the immediate data header.
func (p *Packet) ImmDt() ImmDt { h, _ := ParseImmDt(p.header(HeaderImmDt)); return h }

// IETH is the invalidate extended header.
func (p *Packet) IETH() IETH { h, _ := ParseIETH(p.header(HeaderIETH)); return h }

// APSN is the header with the PSN that the AETH of a request is for.
func (p *Packet) APSN() APSN { h, _ := ParseAPSN(p.header(HeaderAPSN)); return h }

// DETH is the datagram extended header.
func (p *Packet) DETH() DETH { h, _ := ParseDETH(p.header(HeaderDETH)); return h }

// RDETH is the reliable datagram extended header.
func (p *Packet) RDETH() RDETH { h, _ := ParseRDETH(p.header(HeaderRDETH)); return h }

// XRCETH is the extended reliable connection header.
func (p *Packet) XRCETH() XRCETH { h, _ := ParseXRCETH(p.header(HeaderXRCETH)); return h }

// FETH is the flush extended header.
func (p *Packet) FETH() FETH { h, _ := ParseFETH(p.header(HeaderFETH)); return h }

// ICRC is the invariant CRC that the packet carries, 0 when nothing was decoded.
func (p *Packet) ICRC() uint32 {
	if p.Spec == nil {
		return 0
	}
	at := p.end - ICRCLen
	if p.end <= len(p.head) {
		return binary.LittleEndian.Uint32(p.head[at:])
	}
	var b [ICRCLen]byte
	for i := range b {
		b[i] = p.byteAt(at + i)
	}
	return binary.LittleEndian.Uint32(b[:])
}

// byteAt is byte i of the frame.
func (p *Packet) byteAt(i int) byte {
	if i < len(p.head) {
		return p.head[i]
	}
	return p.tail[i-len(p.head)]
}

// VerifyICRC reports whether the packet carries the invariant CRC that its bytes
// ask for. It is false when nothing was decoded. It does not allocate.
func (p *Packet) VerifyICRC() bool {
	if p.Spec == nil {
		return false
	}
	end := p.end - ICRCLen
	if end <= len(p.head) {
		return ICRC(p.Framing, p.head[p.net:end], nil) == p.ICRC()
	}
	return ICRC(p.Framing, p.head[p.net:], p.tail[:end-len(p.head)]) == p.ICRC()
}
