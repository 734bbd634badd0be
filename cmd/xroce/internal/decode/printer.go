package decode

import (
	"net/netip"
	"strconv"

	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/capture/read"
	"xroce/roce/clock"
	"xroce/roce/dissect"
)

// Form is how packets are printed.
type Form uint8

// The forms.
const (
	Lines   Form = iota // one line each
	Details             // and every field of every header below it
	JSON                // an object on a line each
)

// A Printer prints the packets of one capture.
type Printer struct {
	form      Form
	dissector dissect.Dissector
	packet    dissect.Packet
	tree      dissect.Tree
	begun     bool
	first     int64 // nanoseconds since 1970

	number counterFace
	clock  clockFace
	routes [2]route
	oldest int // of routes
}

// The columns of a line that have numbers, in bytes.
const (
	numberWidth  = 6
	secondsWidth = 12
)

// New returns a Printer.
func New(f Form) *Printer { return &Printer{form: f} }

// Append adds the lines of the next packet of the capture.
func (p *Printer) Append(b []byte, c *read.Packet) []byte {
	if !p.begun {
		p.begun, p.first = true, c.Time
	}
	p.dissector.Now = clock.Time(c.Time)
	p.dissector.Dissect(c.Link, c.Data, c.Length, &p.packet)
	if p.form == JSON {
		return p.appendJSON(b, c)
	}
	b = p.number.append(b, uint64(c.Number), numberWidth)
	b = append(b, ' ')
	b = p.clock.append(b, c.Time-p.first, secondsWidth)
	b = append(b, ' ')
	b = p.appendAddresses(b)
	b = append(b, ' ')
	b = p.packet.AppendInfo(b)
	if d := c.Direction; d != read.Unknown {
		b = append(append(b, ' '), d.String()...)
	}
	if c.Dropped > 0 {
		b = append(b, " (before it the capture lost "...)
		b = dissect.AppendDecimal(b, c.Dropped)
		b = append(b, ')')
	}
	if c.Comment != "" {
		b = append(append(b, " # "...), plain.Text(c.Comment)...)
	}
	b = append(b, '\n')
	if p.form == Details {
		b = p.appendDetails(b)
	}
	return b
}

// A route is from where to where a packet went, as it is printed.
type route struct {
	src, dst netip.Addr
	text     []byte
}

// appendAddresses adds from where to where the packet goes. Most packets go the way of the last
// one, or back.
func (p *Printer) appendAddresses(b []byte) []byte {
	d := &p.packet
	if !d.Src.IsValid() {
		return d.AppendAddresses(b)
	}
	for i := range p.routes {
		if r := &p.routes[i]; r.src == d.Src && r.dst == d.Dst {
			return append(b, r.text...)
		}
	}
	r := &p.routes[p.oldest]
	p.oldest = (p.oldest + 1) % len(p.routes)
	r.src, r.dst, r.text = d.Src, d.Dst, d.AppendAddresses(r.text[:0])
	return append(b, r.text...)
}

// appendDetails adds every field, as Wireshark would name it.
func (p *Printer) appendDetails(b []byte) []byte {
	p.packet.Tree(&p.tree)
	for _, h := range p.tree.Headers() {
		b = append(append(b, "    "...), h.Name...)
		b = append(b, ", "...)
		b = strconv.AppendInt(b, int64(h.Len), 10)
		b = append(b, " bytes at "...)
		b = strconv.AppendInt(b, int64(h.Off), 10)
		b = append(b, '\n')
		for i := range h.Fields {
			f := &h.Fields[i]
			b = append(append(b, "        "...), f.Name...)
			b = append(b, ": "...)
			if f.Form == dissect.Text {
				b = append(b, plain.Text(f.Text)...)
			} else {
				b = f.AppendValue(b)
				if f.Text != "" {
					b = append(append(append(b, " ("...), f.Text...), ')')
				}
			}
			b = append(b, '\n')
		}
	}
	return append(b, '\n')
}
