package decode

import (
	"fmt"
	"strconv"

	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/capture/read"
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
}

// New returns a Printer.
func New(f Form) *Printer { return &Printer{form: f} }

// Append adds the lines of the next packet of the capture.
func (p *Printer) Append(b []byte, c *read.Packet) []byte {
	if !p.begun {
		p.begun, p.first = true, c.Time
	}
	p.dissector.Dissect(c.Link, c.Data, c.Length, &p.packet)
	if p.form == JSON {
		return p.appendJSON(b, c)
	}
	b = appendPadded(b, int64(c.Number), 6)
	b = append(b, ' ')
	b = appendSeconds(b, c.Time-p.first, 12)
	b = append(b, ' ')
	b = p.packet.AppendAddresses(b)
	b = append(b, ' ')
	b = p.packet.AppendInfo(b)
	if d := c.Direction; d != read.Unknown {
		b = append(append(b, ' '), d.String()...)
	}
	if c.Dropped > 0 {
		b = append(b, " (before it the capture lost "...)
		b = strconv.AppendUint(b, c.Dropped, 10)
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

// appendPadded adds a number, with spaces before it.
func appendPadded(b []byte, n int64, width int) []byte {
	for ; width > 1; width-- {
		if n < pow10[width-1] {
			b = append(b, ' ')
		}
	}
	return strconv.AppendInt(b, n, 10)
}

// appendSeconds adds nanoseconds as seconds with six digits behind the point, or nine where they
// are finer than that.
func appendSeconds(b []byte, ns int64, width int) []byte {
	if ns < 0 { // rare: a clock was set
		return fmt.Appendf(b, "%*.6f", width, float64(ns)/1e9)
	}
	const digits = 6
	b = appendPadded(b, ns/1e9, width-digits-1)
	b = append(b, '.')
	frac := ns % 1e9
	if frac%1000 == 0 {
		frac /= 1000
		return appendZeros(b, frac, digits)
	}
	return appendZeros(b, frac, 9)
}

// appendZeros adds a number with zeros before it.
func appendZeros(b []byte, n int64, width int) []byte {
	for ; width > 1; width-- {
		if n < pow10[width-1] {
			b = append(b, '0')
		}
	}
	return strconv.AppendInt(b, n, 10)
}

var pow10 = [...]int64{1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}
