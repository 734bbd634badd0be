package gen

import (
	"encoding/binary"
	"net/netip"

	"xroce/roce/wire"
)

// Found is what a frame that came turned out to be.
type Found uint8

// What a frame may be.
const (
	Foreign  Found = iota // none of ours
	Signed                // it has a signature
	Unsigned              // a RoCE packet without one
	BadICRC               // a RoCE packet whose ICRC is wrong; its signature is not believed
)

// An Arrival is what a frame says that came.
type Arrival struct {
	Found     Found
	Signature Signature
	SrcMAC    [6]byte
	Src       netip.AddrPort // of UDP datagrams and RoCE v2, zero for others
	Mark      uint8          // the ECN bits, where there are any
	Opcode    wire.Opcode    // of RoCE packets
}

// A Reader finds signatures. One caller at a time.
type Reader struct{ packet wire.Packet }

// Read looks at a frame in one or two pieces. It believes no length that the frame does not
// have.
func (r *Reader) Read(head, tail []byte) (a Arrival) {
	if len(head) < ethLen {
		return a
	}
	copy(a.SrcMAC[:], head[6:])
	_, etherType, off, ok := wire.ParseTags(head)
	if !ok {
		return a
	}
	switch etherType {
	case typeIPv4, typeIPv6, wire.EtherTypeV1:
		if r.packet.Decode(head, tail) == wire.OK {
			r.readRoCE(&a)
			return a
		}
		if etherType != wire.EtherTypeV1 {
			readUDP(&a, head[off:], etherType == typeIPv6)
		}
	default:
		a.sign(head[off:])
	}
	return a
}

// sign notes the signature of a payload, if it has one.
func (a *Arrival) sign(payload []byte) {
	if s, ok := ParseSignature(payload); ok {
		a.Found, a.Signature = Signed, s
	}
}

// readRoCE takes the packet that was decoded.
func (r *Reader) readRoCE(a *Arrival) {
	p := &r.packet
	a.Found, a.Mark, a.Opcode = Unsigned, p.TClass&3, p.BTH.Opcode
	if p.Framing != wire.FramingV1 {
		a.Src = netip.AddrPortFrom(p.Src.Addr(), p.SrcPort)
	}
	if !p.VerifyICRC() {
		a.Found = BadICRC
		return
	}
	var b [SignatureLen]byte
	a.sign(b[:p.CopyPayload(b[:])])
}

// readUDP takes an IP packet. What is not a whole UDP datagram is foreign. UDP checksums are
// not looked at.
func readUDP(a *Arrival, b []byte, ipv6 bool) {
	var src netip.Addr
	ip := ipv4Len
	switch {
	case ipv6:
		if ip = ipv6Len; len(b) < ip || b[6] != protoUDP {
			return
		}
		a.Mark = b[1] >> 4 & 3
		src = netip.AddrFrom16([16]byte(b[8:]))
	case len(b) < ip || b[9] != protoUDP || binary.BigEndian.Uint16(b[6:])&0x3fff != 0:
		return
	default:
		ip = int(b[0]&0xf) * 4
		a.Mark = b[1] & 3
		src = netip.AddrFrom4([4]byte(b[12:]))
	}
	if ip < ipv4Len || len(b) < ip+udpLen {
		return
	}
	a.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b[ip:]))
	a.sign(b[ip+udpLen:])
}
