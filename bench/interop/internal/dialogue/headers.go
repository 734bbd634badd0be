package dialogue

import (
	"fmt"

	"xroce/bench/softroce"
	"xroce/roce/wire"
)

// ipFields are the fields of the network header that have a rule or a value.
type ipFields struct {
	Src, Dst  wire.GID
	TClass    uint8
	HopLimit  uint8
	FlowLabel uint32
	Tagged    bool // with a VLAN
}

// udpFields are those of the UDP header.
type udpFields struct{ SourcePort uint16 }

// headers takes what all headers of a packet say.
func headers(b *book, from softroce.End, p *wire.Packet, fields map[string]string) {
	r := reader{book: b, from: from, packet: p, fields: fields}
	tagged := p.Tags != wire.Tags{}
	r.read("IP", ipFields{p.Src, p.Dst, p.TClass, p.HopLimit, p.FlowLabel, tagged})
	r.read("UDP", udpFields{p.SrcPort})
	fields["UDP.SourcePort range"] = fmt.Sprintf("ephemeral %t", p.SrcPort >= 0xc000)
	r.read("BTH", p.BTH)
	fields["payload length"] = fmt.Sprint(p.PayloadLen())
	for _, h := range []struct {
		header wire.HeaderSet
		name   string
		value  any
	}{
		{wire.HasRETH, "RETH", p.RETH()},
		{wire.HasAtomicETH, "AtomicETH", p.AtomicETH()},
		{wire.HasAtomicAckETH, "AtomicAckETH", p.AtomicAckETH()},
		{wire.HasDETH, "DETH", p.DETH()},
		{wire.HasImmDt, "ImmDt", p.ImmDt()},
		{wire.HasIETH, "IETH", p.IETH()},
	} {
		if p.Spec.Has(h.header) {
			r.read(h.name, h.value)
		}
	}
	if p.Spec.Has(wire.HasAETH) {
		a := p.AETH()
		fields["AETH.MSN"] = fmt.Sprint(a.MSN)
		fields["AETH.Syndrome"] = a.Syndrome.String()
		if a.Syndrome.IsACK() {
			// What it says, and what it says besides.
			fields["AETH.Syndrome"] = wire.ACKNoCredits.String()
			fields["AETH.Credits"] = credits(a.Syndrome)
		}
	}
}

// credits prints the credits of an acknowledgement.
func credits(s wire.Syndrome) string {
	if n, counted := wire.Credits(s.Code()); counted {
		return fmt.Sprint(n)
	}
	return "not counted"
}
