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

	routes [2]route
	oldest int // of routes
}

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
	b = appendPadded(b, int64(c.Number), 6)
	b = append(b, ' ')
	b = appendSeconds(b, c.Time-p.first, 12)
	b = append(b, ' ')
	b = p.appendAddresses(b)
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
	const digits = 6
	if width -= digits + 1; ns < 0 { // a clock was set
		return appendBefore(b, uint64(-ns), width)
	}
	b = appendPadded(b, ns/1e9, width)
	return appendFraction(b, ns%1e9)
}

// appendBefore adds a time before the first packet.
func appendBefore(b []byte, ns uint64, width int) []byte {
	sec := int64(ns / 1e9)
	for n := width - 2; n > 0 && sec < pow10[n]; n-- {
		b = append(b, ' ')
	}
	b = append(b, '-')
	b = strconv.AppendInt(b, sec, 10)
	return appendFraction(b, int64(ns%1e9))
}

// appendFraction adds what is behind the whole seconds.
func appendFraction(b []byte, ns int64) []byte {
	b = append(b, '.')
	if us := ns / 1000; us*1000 == ns {
		return appendZeros(b, us, 6)
	}
	return appendZeros(b, ns, 9)
}

// appendZeros adds a number with zeros before it, of so many digits in all.
func appendZeros(b []byte, n int64, width int) []byte {
	var text [9]byte
	v := uint32(n)
	for i := width - 1; i >= 0; i-- {
		text[i] = '0' + byte(v%10)
		v /= 10
	}
	return append(b, text[:width]...)
}

var pow10 = [...]int64{1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}
