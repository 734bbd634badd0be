package dissect

import (
	"xroce/roce/cm"
	"xroce/roce/msg"
	"xroce/roce/wire"
)

// managerQP is the number of the queue pair of the connection manager.
const managerQP = 1

// manage reads a message of the connection manager, and remembers the queue pair of who says in
// one that he speaks messages.
func (d *Decoder) manage(p *wire.Packet, m *Message) bool {
	mad := whole(p)
	h, err := cm.ParseHeader(mad)
	if err != nil || h.MgmtClass != cm.MgmtClass || h.Method != cm.MethodSend {
		return false
	}
	var hello msg.Hello
	switch h.Attribute {
	case cm.AttributeREQ:
		r, _ := cm.ParseREQ(mad) // it is as long as a MAD
		if hello, err = helloOf(r.Private[:]); err == nil {
			m.QPN, m.StartingPSN = r.LocalQPN, r.StartingPSN
		}
	case cm.AttributeREP:
		r, _ := cm.ParseREP(mad)
		if hello, err = msg.ParseHello(r.Private[:]); err == nil {
			m.QPN, m.StartingPSN = r.LocalQPN, r.StartingPSN
		}
	case cm.AttributeREJ:
		r, _ := cm.ParseREJ(mad)
		hello, err = msg.ParseHello(r.Private[:])
	default:
		return false
	}
	if err != nil {
		return false
	}
	m.Kind, m.Manager, m.Hello = Hello, h.Attribute, hello
	if h.Attribute != cm.AttributeREJ {
		m.Again = !d.speaks(place{p.Src, m.QPN}, m.StartingPSN)
	}
	return true
}

// helloOf reads the hello of a REQ, which stands behind the addresses of rdma_cm if there are any.
func helloOf(private []byte) (msg.Hello, error) {
	if h, err := msg.ParseHello(private[cm.IPHeaderLen:]); err == nil {
		return h, nil
	}
	return msg.ParseHello(private)
}

// speaks notes that what comes to a queue pair from now on is messages, from a PSN on, and reports
// whether that is new.
func (d *Decoder) speaks(at place, first wire.PSN) bool {
	f := d.flowTo(at)
	if f.speaks && f.first == first {
		return false
	}
	d.drop(&f.request)
	d.drop(&f.response)
	*f = flow{speaks: true, first: first, next: first, begun: true}
	return true
}
