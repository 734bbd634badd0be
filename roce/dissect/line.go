package dissect

import (
	"net/netip"

	"xroce/roce/cm"
	"xroce/roce/wire"
)

// AppendInfo adds what a packet is, on one line without its end: its protocol, its length and
// what there is to say of it.
func (p *Packet) AppendInfo(b []byte) []byte {
	b = append(b, p.Protocol()...)
	b = append(b, ' ')
	b = AppendDecimal(b, uint64(p.Length))
	b = append(b, ' ')
	return p.AppendSummary(b)
}

// AppendAddresses adds from where to where a packet goes, "SRC > DST": addresses of the network
// header, LIDs, or MAC addresses where there is nothing above them.
func (p *Packet) AppendAddresses(b []byte) []byte {
	switch {
	case p.Src.IsValid():
		b = p.Src.AppendTo(b)
		b = append(b, " > "...)
		return p.Dst.AppendTo(b)
	case p.has(LRH):
		lrh, _ := wire.ParseLRH(p.header(LRH))
		b = append(b, "LID "...)
		b = AppendDecimal(b, uint64(lrh.SLID))
		b = append(b, " > LID "...)
		return AppendDecimal(b, uint64(lrh.DLID))
	}
	b = appendMAC(b, p.SrcMAC)
	b = append(b, " > "...)
	return appendMAC(b, p.DstMAC)
}

// Protocol names what the packet is: RoCEv2, RoCEv1, InfiniBand, or the last header that was
// understood.
func (p *Packet) Protocol() string {
	switch {
	case p.IsManager:
		return "CM"
	case p.IsRoCE:
		switch p.RoCE.Framing {
		case wire.FramingV1:
			return "RoCEv1"
		case wire.FramingNative, wire.FramingNativeGRH:
			return "InfiniBand"
		}
		return "RoCEv2"
	case p.Around && p.has(GRH):
		return "RoCEv1"
	case p.Around && p.has(LRH):
		return "InfiniBand"
	case p.Around:
		return "RoCE"
	}
	for i := p.count - 1; i >= 0; i-- {
		switch k := p.layers[i].Kind; k {
		case Other, Payload, VCRC:
		default:
			return k.String()
		}
	}
	return p.Link.String()
}

// has reports whether there is a layer of a kind.
func (p *Packet) has(k Kind) bool { return p.header(k) != nil }

// header is the bytes from the last layer of a kind on, nil when there is none.
func (p *Packet) header(k Kind) []byte {
	for i := p.count - 1; i >= 0; i-- {
		if p.layers[i].Kind == k {
			return p.left(p.layers[i].Off)
		}
	}
	return nil
}

// AppendSummary adds what there is to say of a packet.
func (p *Packet) AppendSummary(b []byte) []byte {
	if p.IsRoCE {
		b = p.appendTransport(b)
		if p.VCRC == Bad {
			b = append(b, " vcrc BAD"...)
		}
	} else {
		b = p.appendOther(b)
	}
	if p.IsRoCE && p.Fragments > 0 {
		b = p.appendFragments(b)
	}
	if p.IsEncap {
		b = append(b, " ["...)
		b = append(b, p.Encap.Format.String()...)
		b = append(b, ' ')
		b = append(b, p.Encap.Kind.String()...)
		b = append(b, ' ')
		b = AppendDecimal(b, uint64(p.Encap.Len()))
		b = append(b, ']')
	}
	if p.IsManager && !p.IsMessage {
		b = append(b, " ["...)
		b = appendManager(b, p)
		b = append(b, ']')
	}
	if p.IsMessage {
		b = append(b, " ["...)
		b = append(b, p.Message.Short()...)
		b = append(b, ']')
	}
	return b
}

// appendFragments adds of how many fragments a packet was put together.
func (p *Packet) appendFragments(b []byte) []byte {
	if p.Fragments == 0 {
		return b
	}
	b = append(b, " of "...)
	b = AppendDecimal(b, uint64(p.Fragments))
	return append(b, " IP fragments"...)
}

// appendOther adds what there is to say of a packet that is not RoCE.
func (p *Packet) appendOther(b []byte) []byte {
	switch {
	case p.Fragment && p.Fragments == 0:
		b = append(b, "IP fragment"...)
		if p.Joining > Joined {
			b = append(append(b, ": "...), p.Joining.String()...)
		}
		return b
	case p.Around:
		b = append(b, "refused: "...)
		b = append(b, p.Refused.String()...)
		return p.appendFragments(b)
	case p.has(UDP) || p.has(TCP):
		b = AppendDecimal(b, uint64(p.SrcPort))
		b = append(b, " > "...)
		return AppendDecimal(b, uint64(p.DstPort))
	case p.VCRC == Bad:
		return append(b, "vcrc BAD"...)
	case p.etherType >= etherMinType:
		b = append(b, "type 0x"...)
		return appendHex(b, uint64(p.etherType), 4)
	}
	return append(b, "data"...)
}

// appendTransport adds a packet of the transport.
func (p *Packet) appendTransport(b []byte) []byte {
	w := &p.RoCE
	s := w.Spec
	b = append(b, s.Name...)
	b = appendHex24(append(b, " qpn=0x"...), w.BTH.DestQP)
	b = appendHex24(append(b, " psn=0x"...), uint32(w.BTH.PSN))
	if w.BTH.AckReq {
		b = append(b, " ack_req"...)
	}
	if w.BTH.SE {
		b = append(b, " se"...)
	}
	if n := w.PayloadLen(); n > 0 {
		b = append(b, " len="...)
		b = AppendDecimal(b, uint64(n))
	}
	if s.Headers != 0 {
		b = p.appendExtended(b)
	}
	if w.TClass&3 == 3 {
		b = append(b, " CE"...)
	}
	if w.BTH.FECN {
		b = append(b, " fecn"...)
	}
	if w.BTH.BECN {
		b = append(b, " becn"...)
	}
	b = append(b, " icrc "...)
	return append(b, p.ICRC.String()...)
}

// appendExtended adds what is in the extended headers.
func (p *Packet) appendExtended(b []byte) []byte {
	w := &p.RoCE
	s := w.Spec
	if s.Has(wire.HasXRCETH) {
		b = appendHexField(b, " xrcsrq=0x", uint64(w.XRCETH().SRQN), 6)
	}
	if s.Has(wire.HasDETH) {
		h := w.DETH()
		b = appendHexField(b, " srcqp=0x", uint64(h.SrcQP), 6)
		b = appendHexField(b, " qkey=0x", uint64(h.QKey), 8)
	}
	if s.Has(wire.HasFETH) {
		h := w.FETH()
		b = append(b, " sel="...)
		b = AppendDecimal(b, uint64(h.SEL))
		b = append(b, " plt="...)
		b = AppendDecimal(b, uint64(h.PLT))
	}
	if s.Has(wire.HasRETH) {
		h := w.RETH()
		b = appendHexField(b, " va=0x", h.VA, 1)
		b = appendHexField(b, " rkey=0x", uint64(h.RKey), 8)
		b = append(b, " dmalen="...)
		b = AppendDecimal(b, uint64(h.DMALen))
	}
	if s.Has(wire.HasAtomicETH) {
		h := w.AtomicETH()
		b = appendHexField(b, " va=0x", h.VA, 1)
		b = appendHexField(b, " rkey=0x", uint64(h.RKey), 8)
		b = appendHexField(b, " swap=0x", h.SwapAdd, 1)
		b = appendHexField(b, " cmp=0x", h.Compare, 1)
	}
	if s.Has(wire.HasAETH) {
		h := w.AETH()
		b = append(b, ' ')
		b = appendSyndrome(b, h.Syndrome)
		b = append(b, " msn="...)
		b = AppendDecimal(b, uint64(h.MSN))
	}
	if s.Has(wire.HasAtomicAckETH) {
		b = appendHexField(b, " orig=0x", w.AtomicAckETH().OrigData, 1)
	}
	if s.Has(wire.HasImmDt) {
		b = appendHexField(b, " imm=0x", uint64(w.ImmDt().Data), 8)
	}
	if s.Has(wire.HasIETH) {
		b = appendHexField(b, " inv=0x", uint64(w.IETH().RKey), 8)
	}
	if s.Has(wire.HasAPSN) {
		b = append(b, " acked="...)
		b = AppendDecimal(b, uint64(w.APSN().PSN))
	}
	return b
}

// appendSyndrome adds what Syndrome.String says, without memory for the common ones.
func appendSyndrome(b []byte, s wire.Syndrome) []byte {
	if s&0x7f == wire.ACKNoCredits {
		return append(b, "ACK"...)
	}
	return append(b, syndromes[s]...)
}

// syndromes are the names of all of them, which cost more to make than all else of a line.
var syndromes = func() (t [256]string) {
	for i := range t {
		t[i] = wire.Syndrome(i).String()
	}
	return t
}()

// appendManager adds a message of the connection manager.
func appendManager(b []byte, p *Packet) []byte {
	if p.Manager.MgmtClass != cm.MgmtClass {
		b = appendHexField(b, "MAD class=0x", uint64(p.Manager.MgmtClass), 2)
		return appendHexField(b, " attribute=0x", uint64(p.Manager.Attribute), 4)
	}
	b = append(b, p.Manager.Attribute.String()...)
	b = appendHexField(b, " tid=0x", p.Manager.TID, 1)
	switch p.Manager.Attribute {
	case cm.AttributeREQ:
		r, _ := cm.ParseREQ(p.MAD)
		b = appendHexField(b, " comm=0x", uint64(r.LocalCommID), 8)
		b = appendHexField(b, " service=0x", uint64(r.ServiceID), 16)
		b = appendHexField(b, " qpn=0x", uint64(r.LocalQPN), 6)
		return appendHexField(b, " psn=0x", uint64(r.StartingPSN), 6)
	case cm.AttributeREP:
		r, _ := cm.ParseREP(p.MAD)
		b = appendComm(b, r.LocalCommID, r.RemoteCommID)
		b = appendHexField(b, " qpn=0x", uint64(r.LocalQPN), 6)
		return appendHexField(b, " psn=0x", uint64(r.StartingPSN), 6)
	case cm.AttributeREJ:
		r, _ := cm.ParseREJ(p.MAD)
		b = appendComm(b, r.LocalCommID, r.RemoteCommID)
		b = append(b, " reason="...)
		return append(b, r.Reason.String()...)
	case cm.AttributeDREQ:
		r, _ := cm.ParseDREQ(p.MAD)
		b = appendComm(b, r.LocalCommID, r.RemoteCommID)
		return appendHexField(b, " qpn=0x", uint64(r.RemoteQPN), 6)
	case cm.AttributeSIDRREQ:
		r, _ := cm.ParseSIDRREQ(p.MAD)
		b = appendHexField(b, " request=0x", uint64(r.RequestID), 8)
		return appendHexField(b, " service=0x", uint64(r.ServiceID), 16)
	case cm.AttributeSIDRREP:
		r, _ := cm.ParseSIDRREP(p.MAD)
		b = appendHexField(b, " request=0x", uint64(r.RequestID), 8)
		b = append(b, " status="...)
		b = append(b, r.Status.String()...)
		b = appendHexField(b, " qpn=0x", uint64(r.QPN), 6)
		return appendHexField(b, " qkey=0x", uint64(r.QKey), 8)
	default: // both ends stand first in all others
		if r, err := cm.ParseRTU(p.MAD); err == nil {
			b = appendComm(b, r.LocalCommID, r.RemoteCommID)
		}
		return b
	}
}

func appendComm(b []byte, local, remote uint32) []byte {
	b = appendHexField(b, " comm=0x", uint64(local), 8)
	return appendHexField(b, " to=0x", uint64(remote), 8)
}

// appendHexField adds a name and a number.
func appendHexField(b []byte, name string, v uint64, width int) []byte {
	b = append(b, name...)
	return appendHex(b, v, width)
}

func appendMAC(b []byte, mac [6]byte) []byte {
	for i, v := range mac {
		if i > 0 {
			b = append(b, ':')
		}
		b = append(b, digits[v>>4], digits[v&0xf])
	}
	return b
}

// macString is a MAC address as text.
func macString(b []byte) string { return string(appendMAC(nil, [6]byte(b))) }

// ipString is an address as text.
func ipString(b []byte) string {
	a, _ := netip.AddrFromSlice(b)
	return a.String()
}
