package dissect

import (
	"errors"

	"xroce/roce/msg"
	"xroce/roce/wire"
)

// ErrCut says that a message is longer than what is kept of one.
var ErrCut = errors.New("dissect: the message is longer than what is kept of one")

// A flow is what comes to a queue pair.
type flow struct {
	speaks  bool     // a hello of its owner was there
	first   wire.PSN // of the connection, if it speaks
	begun   bool     // next is meant
	next    wire.PSN // of requests
	request assembly
	read    wire.RETH // the last one that was asked for
	// response is the answer to a READ of the owner: its PSNs are those of his requests.
	response assembly
	answered bool // nextResponse is meant
	// nextResponse is the PSN behind those of all answers.
	nextResponse wire.PSN
}

// An assembly is a message of which some packets have come.
type assembly struct {
	open   bool
	next   wire.PSN // of the packet that goes on with it
	reth   wire.RETH
	length int // bytes that have come
	bytes  []byte
	cut    bool // bytes lacks some of them
	again  bool // it began with a packet that was sent before
}

// maxSpare is how much memory of a message is kept for the next of its flow.
const maxSpare = 4 << 10

// drop forgets a message.
func (d *Decoder) drop(a *assembly) {
	d.held -= len(a.bytes)
	spare := a.bytes[:0]
	if cap(spare) > maxSpare {
		spare = nil
	}
	*a = assembly{bytes: spare}
}

// take adds a packet to the message that it is a part of, and reports whether it is the last one.
// The message is dropped by the caller then. A packet that does not go on where the message stands
// is left out: it is a repetition, or what is before it is missing.
func (d *Decoder) take(a *assembly, p *wire.Packet, keep bool) (complete bool) {
	class := p.BTH.Opcode.Spec().Class
	switch psn := p.BTH.PSN; {
	case class&wire.ClassFirst != 0:
		d.drop(a)
		*a = assembly{open: true, next: psn, bytes: a.bytes}
		if p.BTH.Opcode.Spec().Headers&wire.HasRETH != 0 {
			a.reth = p.RETH()
		}
	case !a.open || psn != a.next:
		return false
	}
	a.next = a.next.Add(1)
	n := p.PayloadLen()
	a.length += n
	switch {
	case !keep || a.cut:
	case len(a.bytes)+n > maxFrame || d.held+n > maxHeld:
		a.cut = true
	default:
		a.bytes = append(append(a.bytes, p.Payload...), p.PayloadTail...)
		d.held += n
	}
	return class&wire.ClassLast != 0
}

// transport reads a packet of a reliable connection.
func (d *Decoder) transport(p *wire.Packet, m *Message) bool {
	class := p.BTH.Opcode.Spec().Class
	f := d.flowTo(place{p.Dst, p.BTH.DestQP})
	m.Perhaps = !f.speaks
	switch {
	case class&wire.ClassRequest != 0:
		return d.requested(f, p, m)
	case class&wire.ClassRead != 0 && f.speaks:
		return d.responded(f, p, m)
	}
	return false
}

// responded reads a packet that answers a READ.
func (d *Decoder) responded(f *flow, p *wire.Packet, m *Message) bool {
	a, psn := &f.response, p.BTH.PSN
	again := f.answered && psn.Before(f.nextResponse)
	if !again {
		f.answered, f.nextResponse = true, psn.Add(1)
	}
	if !d.take(a, p, false) {
		return false
	}
	m.Kind, m.Len, m.Again = ReadResponse, uint64(a.length), again
	d.drop(a)
	return true
}

// asked notes a READ, and reports whether it asks for a part of the last one again, as who missed
// some of the answer does. Its PSN does not tell: a READ takes one for each packet of the answer.
func (f *flow) asked(h wire.RETH) (again bool) {
	last := f.read
	f.read = h
	off := h.VA - last.VA
	return last.DMALen > 0 && h.RKey == last.RKey && off < uint64(last.DMALen) &&
		off+uint64(h.DMALen) == uint64(last.DMALen)
}

// requested reads a request.
func (d *Decoder) requested(f *flow, p *wire.Packet, m *Message) bool {
	psn := p.BTH.PSN
	again := f.begun && psn.Before(f.next)
	if !again {
		f.begun, f.next = true, psn.Add(1)
	}
	spec := p.BTH.Opcode.Spec()
	if spec.Class&wire.ClassRead != 0 {
		m.Again = f.asked(p.RETH()) || again
		return f.speaks && d.oneSided(Read, p.RETH(), uint64(p.RETH().DMALen), m)
	}
	a := &f.request
	keep := f.speaks || len(a.bytes) > 0
	if spec.Class&wire.ClassFirst != 0 {
		keep = f.speaks || perhaps(p)
	}
	complete := d.take(a, p, keep)
	a.again = a.again || again
	if !complete {
		return false
	}
	defer d.drop(a)
	m.Again, m.Len = a.again, uint64(a.length)
	switch {
	case spec.Class&wire.ClassSend != 0:
		return d.control(f, a, m)
	case spec.Class&wire.ClassWrite != 0 && spec.Headers&wire.HasImmDt != 0:
		return d.frame(f, a, p.ImmDt().Data, m)
	case spec.Class&wire.ClassWrite != 0:
		return f.speaks && d.oneSided(Write, a.reth, uint64(a.length), m)
	}
	return false
}

// perhaps reports whether a message that begins so may be one of ours, where no hello was there. Of
// others nothing has to be kept.
func perhaps(p *wire.Packet) bool {
	var err error
	if p.BTH.Opcode.Spec().Class&wire.ClassSend != 0 {
		_, err = msg.ParseControl(p.Payload)
	} else {
		_, err = msg.ParseFrame(p.Payload)
	}
	switch err {
	case msg.ErrShort, msg.ErrMagic, msg.ErrVersion, msg.ErrType, msg.ErrReserved, msg.ErrRecords:
		return len(p.PayloadTail) > 0 // the beginning of it may be there
	}
	return true
}

// control reads a SEND.
func (d *Decoder) control(f *flow, a *assembly, m *Message) bool {
	m.Kind = Control
	m.Control, m.Err = msg.ParseControl(a.bytes)
	if a.cut {
		m.Err = ErrCut
	}
	if m.Err != nil {
		return f.speaks
	}
	c := &m.Control
	if c.Type == msg.TypeRTS && c.Flags&msg.FlagGet != 0 || c.Type == msg.TypeRTR {
		d.keys.put(key{m.Src, c.RKey}, c.ID, maxKeys)
	}
	return true
}

// frame reads a WRITE WITH IMMEDIATE.
func (d *Decoder) frame(f *flow, a *assembly, immediate uint32, m *Message) bool {
	m.Kind, m.Immediate = Frame, msg.ParseImmediate(immediate)
	m.Addr, m.RKey = a.reth.VA, a.reth.RKey
	frame, err := msg.ParseFrame(a.bytes)
	if err == nil {
		m.Frame = frame.FrameHeader
		var r msg.Record
		it := frame.Iterate()
		for it.Next(&r) {
			m.Count++
			if len(m.Records) < maxRecords {
				m.Records = append(m.Records, r.RecordHeader)
			}
		}
		err = it.Err()
	}
	if m.Err = err; a.cut {
		m.Err = ErrCut
	}
	return m.Err == nil || f.speaks
}

// oneSided is a READ or a WRITE, of a rendezvous if the key is known.
func (d *Decoder) oneSided(k Kind, h wire.RETH, length uint64, m *Message) bool {
	m.Kind, m.Addr, m.RKey, m.Len = k, h.VA, h.RKey, length
	m.ID, m.Known = d.keys.get(key{m.Dst, h.RKey})
	return true
}
