package roce

import (
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// admit makes the checks whose failure is silent, in the order of IBA 9.6.
// The ICRC is last because it is the dearest.
func (q *QP) admit(p *wire.Packet) Reason {
	state := q.State()
	switch {
	case !state.Receives() || q.typ == TypeRawPacket:
		return reasonState
	case uint8(p.Spec.Service)<<5 != q.service && !q.understands(p):
		return reasonService
	case !q.typ.Datagram() && (p.Src != q.attr.Path.Dst || p.Dst != q.attr.Path.Src ||
		p.Framing != q.attr.Path.Framing ||
		p.Tags != q.attr.Path.Tags && p.Tags.VLAN() != q.attr.Path.Tags.VLAN()):
		return reasonSource
	case !q.inPartition(p.BTH.PKey):
		return reasonPKey
	case !p.VerifyICRC():
		return reasonICRC
	case !p.Spec.Is(wire.ClassRequest) && (!state.Sends() || q.typ == TypeXRCRecv) &&
		p.BTH.Opcode != wire.CNP: // one may be for the response to a READ
		return reasonState
	case p.Spec.Is(wire.ClassRequest) && q.typ == TypeXRCSend:
		return reasonService
	}
	return reasonAdmitted
}

// inPartition reports whether a packet with a P_Key is for this QP: in its partition, and not
// between limited members. QP 1 is in all partitions of the port (IBA 10.9.8).
func (q *QP) inPartition(pkey uint16) bool {
	if q.typ == TypeGSI {
		_, ok := q.common.PKeys.Find(pkey)
		return ok
	}
	return verbs.PKeysMatch(q.pkey(), pkey)
}

// understands reports whether a packet is of no service but means something to the QP.
func (q *QP) understands(p *wire.Packet) bool {
	switch p.BTH.Opcode {
	case wire.SelectiveAck:
		return q.attr.Extensions&earlyExtensions != 0
	case wire.CNP:
		return q.congestion != nil
	}
	return p.Spec.Has(wire.HasAPSN) && q.attr.Extensions&ExtPiggybackAck != 0
}
