package dissect

import (
	"net/netip"

	"xroce/encap"
	"xroce/roce/cm"
	msgdissect "xroce/roce/msg/dissect"
	"xroce/roce/wire"
)

// A Packet is what was found in the bytes of one. It borrows them until the next Dissect.
type Packet struct {
	Link   Link
	Data   []byte
	Length int // bytes that it had on the wire

	// RoCE is the packet of RoCE or InfiniBand, if IsRoCE. Where something looked like one and
	// was refused, Refused says why, and Around that it was.
	RoCE    wire.Packet
	IsRoCE  bool
	Around  bool
	Refused wire.Reason
	Snapped bool // the capture lacks its end
	ICRC    Verdict
	VCRC    Verdict // of native packets

	Src, Dst         netip.Addr // of the innermost network header, invalid where there is none
	SrcMAC, DstMAC   [6]byte
	SrcPort, DstPort uint16 // of the innermost TCP or UDP header
	Tunnel           bool   // the RoCE packet was inside another one
	Fragment         bool   // a part of an IP datagram, or the packet of RoCE that one made whole

	// Joining says what came of a fragment. When it was the last one that was missing, Fragments
	// is how many there were, and Data has all of the datagram behind the headers of that one.
	Joining   Joining
	Fragments int

	// Manager is the header of a message of the connection manager, which is MAD.
	IsManager bool
	Manager   cm.Header
	MAD       []byte

	// Message is something that is said in messages and ends in this packet.
	IsMessage bool
	Message   msgdissect.Message

	// Encap is a datagram that was encapsulated by package encap, or would be by others.
	IsEncap bool
	Encap   encap.Packet

	lacks     int  // bytes that the capture did not keep
	joinedAt  int  // where the data of all fragments begin
	joinedV6  bool // they were those of IPv6
	etherType uint16
	layers    [maxLayers]Layer
	count     int
}

// Layers are the headers from the outside inwards. They are the packet's.
func (p *Packet) Layers() []Layer { return p.layers[:p.count] }

// add notes a layer. None is longer than the packet, whatever a header says.
func (p *Packet) add(k Kind, off, n int) {
	end := max(p.Length, len(p.Data))
	off = min(off, end)
	n = min(n, end-off)
	if p.count < maxLayers {
		p.layers[p.count] = Layer{k, off, n}
		p.count++
	}
}

// full reports whether no more layers are looked for.
func (p *Packet) full() bool { return p.count >= maxLayers-6 } // room for those of RoCE

// left is what there is from an offset on.
func (p *Packet) left(off int) []byte { return p.Data[min(off, len(p.Data)):] }

// reset makes the packet ready for the next one.
func (p *Packet) reset(link Link, data []byte, length int) {
	records := p.Message.Records
	p.Link, p.Data, p.Length = link, data, max(length, len(data))
	p.lacks, p.Joining, p.Fragments = p.Length-len(data), NoFragment, 0
	p.IsRoCE, p.Around, p.Snapped, p.Tunnel, p.Fragment = false, false, false, false, false
	p.Refused, p.ICRC, p.VCRC = wire.NotRoCE, NoCRC, NoCRC
	p.Src, p.Dst, p.SrcPort, p.DstPort = netip.Addr{}, netip.Addr{}, 0, 0
	p.SrcMAC, p.DstMAC = [6]byte{}, [6]byte{}
	p.IsManager, p.IsMessage, p.IsEncap = false, false, false
	p.MAD, p.etherType, p.count = nil, 0, 0
	p.Message.Records = records
}

// Pad is the padding behind the payload of a packet of RoCE that came whole.
func (p *Packet) Pad() []byte {
	b := p.header(Payload)
	n := p.RoCE.PayloadLen()
	if !p.IsRoCE || p.Snapped || n+int(p.RoCE.BTH.PadCnt) > len(b) {
		return nil
	}
	return b[n : n+int(p.RoCE.BTH.PadCnt)]
}
