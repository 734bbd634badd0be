package filter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"xroce/roce/wire"
)

// This file has the conditions on fields of RoCE, and on what came of a packet.

// A field is what can be compared. One of number and text is set.
type field struct {
	number func(v *view) (value uint64, ok bool)
	text   func(v *view) string
	names  func(name string) (values func(uint64) bool, ok bool) // instead of a number
	help   string
}

// fields are what can be compared, by name.
var fields = map[string]field{
	"opcode": {
		number: ofBTH(func(h *wire.BTH) uint64 { return uint64(h.Opcode) }),
		names:  opcodesNamed, help: "of the BTH, a number or a name as READ_REQUEST",
	},
	"destqp": {
		number: ofBTH(func(h *wire.BTH) uint64 { return uint64(h.DestQP) }),
		help:   "destination queue pair",
	},
	"psn": {
		number: ofBTH(func(h *wire.BTH) uint64 { return uint64(h.PSN) }), help: "of the BTH",
	},
	"pkey": {
		number: ofBTH(func(h *wire.BTH) uint64 { return uint64(h.PKey) }), help: "of the BTH",
	},
	"ackreq": {
		number: ofBTH(func(h *wire.BTH) uint64 { return bit(h.AckReq) }), help: "1 or 0",
	},
	"se": {
		number: ofBTH(func(h *wire.BTH) uint64 { return bit(h.SE) }), help: "solicited event",
	},
	"fecn": {
		number: ofBTH(func(h *wire.BTH) uint64 { return bit(h.FECN) }), help: "1 or 0",
	},
	"becn": {
		number: ofBTH(func(h *wire.BTH) uint64 { return bit(h.BECN) }), help: "1 or 0",
	},
	"syndrome": {
		number: ofHeader(wire.HeaderAETH, func(p *wire.Packet) uint64 {
			return uint64(p.AETH().Syndrome)
		}), help: "of the AETH",
	},
	"msn": {
		number: ofHeader(wire.HeaderAETH, func(p *wire.Packet) uint64 {
			return uint64(p.AETH().MSN)
		}), help: "of the AETH",
	},
	"dmalen": {
		number: ofHeader(wire.HeaderRETH, func(p *wire.Packet) uint64 {
			return uint64(p.RETH().DMALen)
		}), help: "of the RETH, in bytes",
	},
	"srcqp": {
		number: ofHeader(wire.HeaderDETH, func(p *wire.Packet) uint64 {
			return uint64(p.DETH().SrcQP)
		}), help: "of the DETH",
	},
	"payload": {number: ofRoCE(func(p *wire.Packet) uint64 {
		return uint64(p.PayloadLen())
	}), help: "bytes"},
	"ecn": {number: ofRoCE(func(p *wire.Packet) uint64 {
		return uint64(p.TClass & 3)
	}), help: "of IP, 3 is congestion experienced"},
	"len": {number: func(v *view) (uint64, bool) { return uint64(v.size()), true }, help: "bytes"},
	"queue": {number: func(v *view) (uint64, bool) {
		return uint64(v.packet.Queue), true
	}, help: "of the interface"},
	"wr": {number: func(v *view) (uint64, bool) {
		return v.packet.WRID, v.packet.HasWR
	}, help: "ID of the work request"},
	"verdict": {text: func(v *view) string { return v.packet.Verdict }, help: "as dropped"},
	"reason":  {text: func(v *view) string { return v.packet.Reason }, help: "as psn_gap"},
}

// qpn is a queue pair of either end.
const qpn = "qpn"

// aliases are the names of Wireshark.
var aliases = map[string]string{
	"infiniband.bth.opcode": "opcode", "infiniband.bth.destqp": "destqp",
	"infiniband.bth.psn": "psn", "infiniband.bth.p_key": "pkey", "infiniband.bth.a": "ackreq",
	"infiniband.bth.se": "se", "infiniband.aeth.syndrome": "syndrome",
	"infiniband.aeth.msn": "msn", "infiniband.reth.dmalen": "dmalen",
	"infiniband.deth.srcqp": "srcqp", "frame.len": "len",
}

func init() {
	fields[qpn] = field{
		number: func(*view) (uint64, bool) { return 0, false },
		help:   "queue pair of either end",
	}
	for name, of := range aliases {
		fields[name] = fields[of]
	}
}

// Fields lists what can be compared, a line each: name and meaning.
func Fields() []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, is := aliases[name]; !is {
			lines = append(lines, fmt.Sprintf("%-9s %s", name, fields[name].help))
		}
	}
	return lines
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func ofRoCE(get func(p *wire.Packet) uint64) func(v *view) (uint64, bool) {
	return func(v *view) (uint64, bool) {
		p := v.rocePacket()
		if p == nil {
			return 0, false
		}
		return get(p), true
	}
}

func ofBTH(get func(h *wire.BTH) uint64) func(v *view) (uint64, bool) {
	return ofRoCE(func(p *wire.Packet) uint64 { return get(&p.BTH) })
}

func ofHeader(
	h wire.Header, get func(p *wire.Packet) uint64,
) func(v *view) (uint64, bool) {
	return func(v *view) (uint64, bool) {
		p := v.rocePacket()
		if p == nil || p.Spec.Offsets[h] == 0 {
			return 0, false
		}
		return get(p), true
	}
}

// field compares a field, or asks whether it is there and not 0.
func (p *parser) field(name string, f field) test {
	if !p.isComparison() {
		switch {
		case f.text != nil:
			return func(v *view) bool { return f.text(v) != "" }
		case name == qpn:
			p.fail("want a number to compare qpn with%s", p.found())
			return never
		}
		return func(v *view) bool { n, ok := f.number(v); return ok && n != 0 }
	}
	operator := p.token
	compare := p.comparison()
	equal := operator == "==" || operator == "="
	if f.text != nil || f.names != nil && !startsWithDigit(p.token) {
		if !equal && operator != "!=" {
			p.fail("a name can be compared with == and != alone")
			return never
		}
		return p.named(name, f, equal)
	}
	want := p.number(64)
	if name == qpn {
		return qpnIs(compare, want, operator == "!=")
	}
	return func(v *view) bool {
		have, ok := f.number(v)
		return ok && compare(have, want)
	}
}

// startsWithDigit reports whether a word is to be a number.
func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// named compares a field with a name.
func (p *parser) named(name string, f field, equal bool) test {
	if p.kind != tokenWord {
		p.fail("want a name%s", p.found())
		return never
	}
	word := p.token
	if f.text != nil {
		p.next()
		return func(v *view) bool {
			return f.text(v) != "" && strings.EqualFold(f.text(v), word) == equal
		}
	}
	is, ok := f.names(word)
	if !ok {
		p.fail("no %s has the name %q", name, word)
		return never
	}
	p.next()
	return func(v *view) bool {
		n, ok := f.number(v)
		return ok && is(n) == equal
	}
}

// opcodesNamed finds opcodes by name, with or without their transport service.
func opcodesNamed(name string) (is func(uint64) bool, ok bool) {
	var set [256]bool
	for op, spec := range wire.Opcodes() {
		_, bare, _ := strings.Cut(spec.Name, "_")
		if strings.EqualFold(spec.Name, name) || strings.EqualFold(bare, name) {
			set[op], ok = true, true
		}
	}
	return func(n uint64) bool { return set[uint8(n)] }, ok
}

// qpnIs compares the queue pairs of both ends: one of them must be so, or none of them for !=.
func qpnIs(compare comparison, want uint64, not bool) test {
	return func(v *view) bool {
		var ends [4]uint64
		n := 0
		add := func(number uint32) {
			if number != 0 {
				ends[n] = uint64(number)
				n++
			}
		}
		add(v.packet.QPN)
		add(v.packet.Peer)
		if p := v.rocePacket(); p != nil {
			add(p.BTH.DestQP)
			if p.Spec.Offsets[wire.HeaderDETH] != 0 {
				add(p.DETH().SrcQP)
			}
		}
		for _, number := range ends[:n] {
			if compare(number, want) != not {
				return !not
			}
		}
		return not && n > 0
	}
}
