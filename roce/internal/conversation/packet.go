package conversation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"xroce/roce/wire"
)

// headers are the contents of all headers that a packet may have.
type headers struct {
	bth    wire.BTH
	reth   wire.RETH
	aeth   wire.AETH
	atomic wire.AtomicETH
	orig   wire.AtomicAckETH
	imm    wire.ImmDt
	ieth   wire.IETH
	deth   wire.DETH
	xrceth wire.XRCETH
	feth   wire.FETH
	apsn   wire.APSN
}

// headersOf copies the headers of a packet.
func headersOf(p *wire.Packet) headers {
	return headers{
		p.BTH, p.RETH(), p.AETH(), p.AtomicETH(), p.AtomicAckETH(), p.ImmDt(), p.IETH(),
		p.DETH(), p.XRCETH(), p.FETH(), p.APSN(),
	}
}

// put writes the headers that the opcode has, at the start of the BTH.
func (h *headers) put(spec *wire.OpcodeSpec, b []byte) {
	h.bth.Put(b)
	for _, one := range []struct {
		header wire.Header
		put    func([]byte)
	}{
		{wire.HeaderRETH, h.reth.Put},
		{wire.HeaderAETH, h.aeth.Put},
		{wire.HeaderAtomicETH, h.atomic.Put},
		{wire.HeaderAtomicAckETH, h.orig.Put},
		{wire.HeaderImmDt, h.imm.Put},
		{wire.HeaderIETH, h.ieth.Put},
		{wire.HeaderDETH, h.deth.Put},
		{wire.HeaderXRCETH, h.xrceth.Put},
		{wire.HeaderFETH, h.feth.Put},
		{wire.HeaderAPSN, h.apsn.Put},
	} {
		if spec.Has(1 << one.header) {
			one.put(b[spec.Offsets[one.header]:])
		}
	}
}

// A field of a packet by the name that the language has for it.
type field struct {
	name   string
	kind   fieldKind
	in     wire.HeaderSet // any of these headers, 0 for the BTH
	get    func(*headers) uint64
	set    func(*headers, uint64)
	absent uint64 // its value in a packet that is sent and does not name it
}

type fieldKind uint8

const (
	kindNumber fieldKind = iota
	kindFlag             // a bare word
	kindSyndrome
	kindAddress
	kindKey
)

func flagBit(on bool) uint64 {
	if on {
		return 1
	}
	return 0
}

// fields are in the order in which they are printed.
var fields = []field{
	{
		"psn", kindNumber, 0, func(h *headers) uint64 { return uint64(h.bth.PSN) },
		func(h *headers, v uint64) { h.bth.PSN = wire.PSN(v & 0xffffff) }, 0,
	},
	{
		"dest_qpn", kindNumber, 0, func(h *headers) uint64 { return uint64(h.bth.DestQP) },
		func(h *headers, v uint64) { h.bth.DestQP = uint32(v) }, 0,
	},
	{
		"pkey", kindNumber, 0, func(h *headers) uint64 { return uint64(h.bth.PKey) },
		func(h *headers, v uint64) { h.bth.PKey = uint16(v) }, wire.DefaultPKey,
	},
	{
		"m", kindNumber, 0, func(h *headers) uint64 { return flagBit(h.bth.M) },
		func(h *headers, v uint64) { h.bth.M = v != 0 }, 1,
	},
	{
		"tver", kindNumber, 0, func(h *headers) uint64 { return uint64(h.bth.TVer) },
		func(h *headers, v uint64) { h.bth.TVer = uint8(v) }, 0,
	},
	{
		"se", kindFlag, 0, func(h *headers) uint64 { return flagBit(h.bth.SE) },
		func(h *headers, v uint64) { h.bth.SE = v != 0 }, 0,
	},
	{
		"ackreq", kindFlag, 0, func(h *headers) uint64 { return flagBit(h.bth.AckReq) },
		func(h *headers, v uint64) { h.bth.AckReq = v != 0 }, 0,
	},
	{
		"fecn", kindFlag, 0, func(h *headers) uint64 { return flagBit(h.bth.FECN) },
		func(h *headers, v uint64) { h.bth.FECN = v != 0 }, 0,
	},
	{
		"becn", kindFlag, 0, func(h *headers) uint64 { return flagBit(h.bth.BECN) },
		func(h *headers, v uint64) { h.bth.BECN = v != 0 }, 0,
	},
	{
		"srq", kindNumber, wire.HasXRCETH,
		func(h *headers) uint64 { return uint64(h.xrceth.SRQN) },
		func(h *headers, v uint64) { h.xrceth.SRQN = uint32(v) }, 0,
	},
	{
		"qkey", kindNumber, wire.HasDETH, func(h *headers) uint64 { return uint64(h.deth.QKey) },
		func(h *headers, v uint64) { h.deth.QKey = uint32(v) }, 0,
	},
	{
		"src_qpn", kindNumber, wire.HasDETH,
		func(h *headers) uint64 { return uint64(h.deth.SrcQP) },
		func(h *headers, v uint64) { h.deth.SrcQP = uint32(v) }, 0,
	},
	{
		"plt", kindNumber, wire.HasFETH, func(h *headers) uint64 { return uint64(h.feth.PLT) },
		func(h *headers, v uint64) { h.feth.PLT = uint8(v) }, 0,
	},
	{
		"sel", kindNumber, wire.HasFETH, func(h *headers) uint64 { return uint64(h.feth.SEL) },
		func(h *headers, v uint64) { h.feth.SEL = uint8(v) }, 0,
	},
	{
		"va", kindAddress, wire.HasRETH | wire.HasAtomicETH,
		func(h *headers) uint64 { return h.reth.VA | h.atomic.VA },
		func(h *headers, v uint64) { h.reth.VA, h.atomic.VA = v, v }, 0,
	},
	{
		"rkey", kindKey, wire.HasRETH | wire.HasAtomicETH,
		func(h *headers) uint64 { return uint64(h.reth.RKey | h.atomic.RKey) },
		func(h *headers, v uint64) { h.reth.RKey, h.atomic.RKey = uint32(v), uint32(v) }, 0,
	},
	{
		"dmalen", kindNumber, wire.HasRETH,
		func(h *headers) uint64 { return uint64(h.reth.DMALen) },
		func(h *headers, v uint64) { h.reth.DMALen = uint32(v) }, 0,
	},
	{
		"swapadd", kindNumber, wire.HasAtomicETH,
		func(h *headers) uint64 { return h.atomic.SwapAdd },
		func(h *headers, v uint64) { h.atomic.SwapAdd = v }, 0,
	},
	{
		"compare", kindNumber, wire.HasAtomicETH,
		func(h *headers) uint64 { return h.atomic.Compare },
		func(h *headers, v uint64) { h.atomic.Compare = v }, 0,
	},
	{
		"syndrome", kindSyndrome, wire.HasAETH,
		func(h *headers) uint64 { return uint64(h.aeth.Syndrome) },
		func(h *headers, v uint64) { h.aeth.Syndrome = wire.Syndrome(v) },
		uint64(wire.ACKNoCredits),
	},
	{
		"msn", kindNumber, wire.HasAETH, func(h *headers) uint64 { return uint64(h.aeth.MSN) },
		func(h *headers, v uint64) { h.aeth.MSN = uint32(v) }, 0,
	},
	{
		"orig", kindNumber, wire.HasAtomicAckETH,
		func(h *headers) uint64 { return h.orig.OrigData },
		func(h *headers, v uint64) { h.orig.OrigData = v }, 0,
	},
	{
		"imm", kindNumber, wire.HasImmDt, func(h *headers) uint64 { return uint64(h.imm.Data) },
		func(h *headers, v uint64) { h.imm.Data = uint32(v) }, 0,
	},
	{
		"inv", kindKey, wire.HasIETH, func(h *headers) uint64 { return uint64(h.ieth.RKey) },
		func(h *headers, v uint64) { h.ieth.RKey = uint32(v) }, 0,
	},
	{
		"acked", kindNumber, wire.HasAPSN, func(h *headers) uint64 { return uint64(h.apsn.PSN) },
		func(h *headers, v uint64) { h.apsn.PSN = wire.PSN(v) }, 0,
	},
}

// belongs reports whether packets of an opcode have the field.
func (f *field) belongs(spec *wire.OpcodeSpec) bool {
	return f.in == 0 || spec.Headers&f.in != 0
}

// A fieldValue is a field that a statement names. What depends on regions is
// known only when the conversation is played.
type fieldValue struct {
	*field
	n    uint64
	addr address
	key  key
}

func (v *fieldValue) resolve(p *player) (uint64, error) {
	switch v.kind {
	case kindAddress:
		return p.address(v.addr)
	case kindKey:
		k, err := p.key(v.key)
		return uint64(k), err
	}
	return v.n, nil
}

// readFields reads all fields that a statement names.
func readFields(a *args, spec *wire.OpcodeSpec) []fieldValue {
	var list []fieldValue
	for i := range fields {
		f := &fields[i]
		v := fieldValue{field: f}
		if f.kind == kindFlag {
			if !a.flag(f.name) {
				continue
			}
			v.n = 1
			list = append(list, v)
			continue
		}
		tok, ok := a.value(f.name)
		if !ok {
			continue
		}
		var err error
		switch f.kind {
		case kindAddress:
			v.addr, err = parseAddress(tok.text)
		case kindKey:
			v.key, err = parseKey(tok.text)
		case kindSyndrome:
			v.n, err = parseSyndrome(tok.text)
		default:
			v.n, err = parseNumber(tok.text)
		}
		if err != nil {
			a.fail(tok.pos, "%s: %v", f.name, err)
		}
		if !f.belongs(spec) {
			a.fail(tok.pos, "%s has no %s", packetName(spec), f.name)
		}
		list = append(list, v)
	}
	return list
}

// readPayload reads len= or data=, one of them at most.
func readPayload(a *args) data {
	if a.has("len") {
		if a.has("data") {
			a.fail(a.pos, "len= and data= exclude each other")
		}
		return data{span: span{n: int(a.number("len", 0, maxData))}, opaque: true}
	}
	return read(a, "data", parseData, data{})
}

// describe prints a packet as a statement: what differs from the ordinary.
func (p *player) describe(pkt *wire.Packet) string {
	h := headersOf(pkt)
	words := []string{packetName(pkt.Spec)}
	for i := range fields {
		f := &fields[i]
		v := f.get(&h)
		switch {
		case !f.belongs(pkt.Spec):
		case f.name == "dest_qpn" && v == p.conf.destQPN:
		case f.in == 0 && f.name != "psn" && v == f.absent:
		case f.kind == kindFlag:
			words = append(words, f.name)
		default:
			words = append(words, f.name+"="+p.format(f.kind, v))
		}
	}
	if n := pkt.PayloadLen(); n > 0 {
		words = append(words, fmt.Sprintf("len=%d", n))
	}
	return strings.Join(words, " ")
}

func (p *player) format(kind fieldKind, v uint64) string {
	switch kind {
	case kindSyndrome:
		return formatSyndrome(v)
	case kindKey:
		for _, r := range p.regions {
			if uint64(r.mr.RKey()) == v {
				return r.name
			}
		}
		for _, w := range p.windows {
			if uint64(w.mw.RKey()) == v {
				return w.name
			}
		}
	case kindAddress:
		for _, r := range p.regions {
			if off := v - r.mr.Addr(); off <= uint64(len(r.bytes)) {
				return fmt.Sprintf("%s:%d", r.name, off)
			}
		}
	}
	if v > 1<<24 || kind == kindAddress {
		return fmt.Sprintf("%#x", v)
	}
	return strconv.FormatUint(v, 10)
}

// match compares a packet with the fields that a statement expects. It returns
// false when they differ, and the names of the fields that the statement has to
// tell and does not.
func (p *player) match(
	pkt *wire.Packet, op wire.Opcode, want []fieldValue,
) (same bool, missing []string, err error) {
	h := headersOf(pkt)
	same = pkt.BTH.Opcode == op
	for i := range fields {
		f := &fields[i]
		if !f.belongs(pkt.Spec) {
			continue
		}
		expected := f.absent
		at := slices.IndexFunc(want, func(v fieldValue) bool { return v.field == f })
		switch {
		case at >= 0:
			if expected, err = want[at].resolve(p); err != nil {
				return false, nil, err
			}
			if f.name == "psn" {
				expected &= 0xffffff
			}
		case f.name == "dest_qpn":
			expected = p.conf.destQPN
		case f.in != 0 || f.name == "psn":
			missing = append(missing, f.name)
			continue
		}
		v := f.get(&h)
		if f.kind == kindSyndrome && expected&anyCredits != 0 && wire.Syndrome(v).IsACK() {
			continue
		}
		same = same && v == expected
	}
	return same, missing, nil
}
