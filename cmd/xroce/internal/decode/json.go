package decode

import (
	"encoding/json"
	"strconv"

	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/capture/read"
	"xroce/roce/dissect"
)

// appendJSON adds a packet as an object: what a line has, and the fields of each header. Decimal
// fields are numbers; what is written in hex is a string.
func (p *Printer) appendJSON(b []byte, c *read.Packet) []byte {
	d := &p.packet
	b = appendNumber(b, `{"packet":`, int64(c.Number))
	b = append(b, `,"seconds":`...)
	b = appendSeconds(b, c.Time-p.first, 0)
	b = appendNumber(b, `,"time_ns":`, c.Time)
	if d.Src.IsValid() {
		b = append(b, `,"src":"`...)
		b = d.Src.AppendTo(b)
		b = append(b, `","dst":"`...)
		b = d.Dst.AppendTo(b)
		b = append(b, '"')
	}
	b = appendText(b, `,"protocol":`, d.Protocol())
	b = appendNumber(b, `,"length":`, int64(d.Length))
	if len(c.Data) < d.Length {
		b = appendNumber(b, `,"captured":`, int64(len(c.Data)))
	}
	if d.Fragments > 0 {
		b = appendNumber(b, `,"fragments":`, int64(d.Fragments))
	}
	if d.IsRoCE {
		w := &d.RoCE
		b = appendText(b, `,"opcode":`, w.Spec.Name)
		b = appendNumber(b, `,"qpn":`, int64(w.BTH.DestQP))
		b = appendNumber(b, `,"psn":`, int64(w.BTH.PSN))
		b = appendNumber(b, `,"payload":`, int64(w.PayloadLen()))
		b = appendText(b, `,"icrc":`, d.ICRC.String())
	} else if d.Around {
		b = appendText(b, `,"refused":`, d.Refused.String())
	}
	if c.Direction != read.Unknown {
		b = appendText(b, `,"direction":`, c.Direction.String())
	}
	if c.Dropped > 0 {
		b = append(b, `,"dropped_before":`...)
		b = strconv.AppendUint(b, c.Dropped, 10)
	}
	if c.Comment != "" {
		b = appendText(b, `,"comment":`, c.Comment)
	}
	b = appendText(b, `,"info":`, string(d.AppendSummary(nil)))
	return append(p.appendLayers(b), "}\n"...)
}

// appendLayers adds the headers with their fields.
func (p *Printer) appendLayers(b []byte) []byte {
	p.packet.Tree(&p.tree)
	b = append(b, `,"layers":[`...)
	for i, h := range p.tree.Headers() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, `{"layer":`, h.Name)
		b = appendNumber(b, `,"offset":`, int64(h.Off))
		b = appendNumber(b, `,"bytes":`, int64(h.Len))
		for j := range h.Fields {
			f := &h.Fields[j]
			b = append(append(append(b, `,"`...), f.Name...), `":`...)
			switch f.Form {
			case dissect.Decimal:
				b = strconv.AppendUint(b, f.Num, 10)
			case dissect.Hex:
				b = append(f.AppendValue(append(b, '"')), '"')
			default:
				b = appendText(b, "", f.Text)
			}
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendNumber(b []byte, name string, v int64) []byte {
	return strconv.AppendInt(append(b, name...), v, 10)
}

// appendText adds a string, which strangers may have written.
func appendText(b []byte, name, v string) []byte {
	b = append(b, name...)
	if harmless(v) {
		return append(append(append(b, '"'), v...), '"')
	}
	document, err := json.Marshal(v)
	if err != nil { // of a string there is none
		return append(b, `""`...)
	}
	return append(b, plain.JSON(document)...)
}

// harmless reports whether a string is the same in JSON.
func harmless(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
