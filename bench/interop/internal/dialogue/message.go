package dialogue

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"

	"xroce/bench/softroce"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// A parsed message can be written again.
type parsed interface{ Put(b []byte, tid uint64) }

// parse reads a message of the connection manager, nil for one that is none.
func parse(a cm.Attribute, mad []byte) (m parsed) {
	switch a {
	case cm.AttributeREQ:
		r, _ := cm.ParseREQ(mad)
		return &r
	case cm.AttributeMRA:
		r, _ := cm.ParseMRA(mad)
		return &r
	case cm.AttributeREJ:
		r, _ := cm.ParseREJ(mad)
		return &r
	case cm.AttributeREP:
		r, _ := cm.ParseREP(mad)
		return &r
	case cm.AttributeRTU:
		r, _ := cm.ParseRTU(mad)
		return &r
	case cm.AttributeDREQ:
		r, _ := cm.ParseDREQ(mad)
		return &r
	case cm.AttributeDREP:
		r, _ := cm.ParseDREP(mad)
		return &r
	case cm.AttributeSIDRREQ:
		r, _ := cm.ParseSIDRREQ(mad)
		return &r
	case cm.AttributeSIDRREP:
		r, _ := cm.ParseSIDRREP(mad)
		return &r
	}
	return nil
}

// message takes a new message. It returns false for one of a conversation that
// began before the dialogue: hosts repeat what an earlier program left unanswered.
func (b *book) message(from softroce.End, p *wire.Packet) (step, bool) {
	h, err := cm.ParseHeader(p.Payload)
	if err != nil {
		return step{key: "no MAD", fields: map[string]string{}}, true
	}
	if b.stray(from, h.Attribute, p.Payload[cm.HeaderLen:]) {
		return step{}, false
	}
	name := h.Attribute.String()
	n := step{key: name, fields: map[string]string{}}
	r := reader{book: b, from: from, packet: p, by: h.Attribute, fields: n.fields}
	m := parse(h.Attribute, p.Payload)
	if m == nil {
		n.fields["MAD"] = "0x" + hex.EncodeToString(p.Payload)
		return n, true
	}
	switch m := m.(type) {
	case *cm.REQ:
		b.asked[told{aCommID, from, uint64(m.LocalCommID)}] = m.LocalQPN
		r.private(name, m.ServiceID, m.Private[:])
	case *cm.SIDRREQ:
		r.private(name, m.ServiceID, m.Private[:])
	case *cm.REP:
		b.hanging[b.meet(from, m)] = true
	case *cm.DREQ:
		n.key += ofConnection(b.conns[told{aCommID, from, uint64(m.LocalCommID)}])
	case *cm.DREP:
		conn := b.conns[told{aCommID, from, uint64(m.LocalCommID)}]
		n.key += ofConnection(conn)
		delete(b.hanging, conn)
	}
	r.read("MAD", h)
	r.read(name, m)
	n.fields[name+" reserved"] = reserved(h, m, p.Payload)
	return n, true
}

// stray reports whether a message is for somebody who has not said anything.
func (b *book) stray(from softroce.End, a cm.Attribute, data []byte) bool {
	t, id := aCommID, data[4:]
	switch a {
	case cm.AttributeREQ, cm.AttributeSIDRREQ:
		return false
	case cm.AttributeSIDRREP:
		t, id = aRequestID, data
	}
	_, known := b.where[told{t, other(from), uint64(binary.BigEndian.Uint32(id))}]
	return !known
}

// ipHeader is what stands before the private data of a request to a service of
// rdma_cm (IBA annex A11), byte by byte.
type ipHeader struct {
	Versions uint16 // of the header and of IP, and reserved bits
	SrcPort  uint16
	Src, Dst netip.Addr
}

// private takes the private data of a request. What is left of them behind the
// header is taken with the message.
func (r *reader) private(name string, s cm.ServiceID, b []byte) {
	if !s.IP() {
		return
	}
	h := ipHeader{
		Versions: binary.BigEndian.Uint16(b), SrcPort: binary.BigEndian.Uint16(b[2:]),
		Src: netip.AddrFrom16([16]byte(b[4:])), Dst: netip.AddrFrom16([16]byte(b[20:])),
	}
	r.labels[cm.FlowLabelOf(h.SrcPort, s.Port())] = true
	r.read(name+".IP", h)
	clear(b[:cm.IPHeaderLen])
}

// reserved prints the bits of a message that are in none of its fields, "none" when
// all are 0.
func reserved(h cm.Header, m parsed, mad []byte) string {
	var again, header [cm.MADLen]byte
	m.Put(again[:], h.TID)
	h.Put(header[:])
	copy(again[:], header[:cm.HeaderLen])
	if s, ok := m.(*cm.REQ); ok && s.ServiceID.IP() {
		copy(again[cm.MADLen-cm.PrivateREQ:], mad[cm.MADLen-cm.PrivateREQ:])
	}
	if s, ok := m.(*cm.SIDRREQ); ok && s.ServiceID.IP() {
		copy(again[cm.MADLen-cm.PrivateSIDRREQ:], mad[cm.MADLen-cm.PrivateSIDRREQ:])
	}
	bits := ""
	for i := range again {
		if x := again[i] ^ mad[i]; x != 0 {
			bits += fmt.Sprintf(" 0x%02x in byte %d", x, i)
		}
	}
	if bits == "" {
		return "none"
	}
	return bits[1:]
}
