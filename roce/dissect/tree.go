package dissect

import (
	"encoding/binary"
	"strconv"

	"xroce/roce/wire"
)

// Form is how the value of a field is written.
type Form uint8

// The forms.
const (
	Decimal Form = iota
	Hex          // with "0x" and as many digits as Width says
	Text         // as it is
)

// A Field is one of a header.
type Field struct {
	Name  string // of Wireshark, or one that begins with "xroce."
	Form  Form
	Width int    // digits of Hex
	Num   uint64 // the value, 0 for Text
	Text  string // the value of Text; of the others what it means, or ""
}

// AppendValue adds the value as it is printed.
func (f *Field) AppendValue(b []byte) []byte {
	switch f.Form {
	case Decimal:
		return strconv.AppendUint(b, f.Num, 10)
	case Hex:
		return appendHex(append(b, "0x"...), f.Num, f.Width)
	}
	return append(b, f.Text...)
}

// A Header is a layer with its fields.
type Header struct {
	Layer
	Name   string
	Fields []Field
}

// A Tree is every field of a packet, header by header. One is reused.
type Tree struct {
	headers []Header
	starts  []int
	fields  []Field
}

// Headers are the headers of the packet that the tree was made of, from the outside inwards. They
// are the tree's.
func (t *Tree) Headers() []Header { return t.headers }

// begin begins a header.
func (t *Tree) begin(l Layer, name string) {
	t.headers = append(t.headers, Header{Layer: l, Name: name})
	t.starts = append(t.starts, len(t.fields))
}

func (t *Tree) dec(name string, v uint64) {
	t.fields = append(t.fields, Field{Name: name, Num: v})
}

func (t *Tree) hex(name string, width int, v uint64) {
	t.fields = append(t.fields, Field{Name: name, Form: Hex, Width: width, Num: v})
}

func (t *Tree) text(name, v string) {
	t.fields = append(t.fields, Field{Name: name, Form: Text, Text: v})
}

func (t *Tree) bool(name string, v bool) {
	n := uint64(0)
	if v {
		n = 1
	}
	t.dec(name, n)
}

// mean says what the last field means.
func (t *Tree) mean(text string) { t.fields[len(t.fields)-1].Text = text }

// Tree lists every field of the packet.
func (p *Packet) Tree(t *Tree) {
	t.headers, t.starts, t.fields = t.headers[:0], t.starts[:0], t.fields[:0]
	for _, l := range p.Layers() {
		p.layer(t, l)
	}
	p.said(t)
	for i := range t.headers {
		end := len(t.fields)
		if i+1 < len(t.starts) {
			end = t.starts[i+1]
		}
		t.headers[i].Fields = t.fields[t.starts[i]:end:end]
	}
}

// layer lists the fields of a layer.
func (p *Packet) layer(t *Tree, l Layer) {
	b := p.left(l.Off)
	if least := fixedLen(l.Kind); len(b) < least || l.Len < least {
		t.begin(l, l.Kind.String()) // the capture has only a part of it
		return
	}
	switch l.Kind {
	case BTH:
		p.treeBTH(t, l)
		return
	case Extended:
		p.treeExtended(t, l)
		return
	case ICRC:
		t.begin(l, "Invariant CRC")
		t.hex("infiniband.invariant.crc", 8, uint64(binary.BigEndian.Uint32(b)))
		t.text("xroce.icrc", p.ICRC.String())
		return
	case VCRC:
		t.begin(l, "Variant CRC")
		if len(b) >= wire.VCRCLen {
			t.hex("infiniband.variant.crc", 4, uint64(binary.BigEndian.Uint16(b)))
		}
		t.text("xroce.vcrc", p.VCRC.String())
		return
	case Payload, Other:
		t.begin(l, l.Kind.String())
		if p.IsRoCE && l.Kind == Payload {
			t.dec("xroce.payload.len", uint64(p.RoCE.PayloadLen()))
		} else {
			t.dec("xroce.data.len", uint64(l.Len))
		}
		if !p.IsRoCE && p.Around && p.Refused != wire.OK {
			t.text("xroce.refused", p.Refused.String())
		}
		return
	}
	t.begin(l, l.Kind.String())
	for _, read := range trees {
		if read.kind == l.Kind {
			read.fields(t, b[:min(l.Len, len(b))])
		}
	}
}

// fixedLen is how long a header of a kind is at least, where its fields are read from its bytes.
func fixedLen(k Kind) int {
	for _, read := range trees {
		if read.kind == k {
			return read.min
		}
	}
	switch k {
	case BTH:
		return wire.BTHLen
	case ICRC:
		return wire.ICRCLen
	}
	return 0
}

// trees are the headers that are read from their bytes alone.
var trees = [...]struct {
	kind   Kind
	min    int
	fields func(t *Tree, b []byte)
}{
	{ERF, erfLen, treeERF},
	{Ethernet, ethernetLen, treeEthernet},
	{Cooked, cookedLen, treeCooked},
	{Cooked2, cooked2Len, treeCooked2},
	{VLAN, vlanLen, treeVLAN},
	{ServiceVLAN, vlanLen, treeServiceVLAN},
	{IPv4, ipv4Len, treeIPv4},
	{IPv6, ipv6Len, treeIPv6},
	{UDP, udpLen, treeUDP},
	{TCP, tcpLen, treeTCP},
	{GRE, greLen, treeGRE},
	{VXLAN, vxlanLen, treeVXLAN},
	{ERSPAN, erspan2Len, treeERSPAN},
	{LRH, wire.LRHLen, treeLRH},
	{RWH, wire.RWHLen, treeRWH},
	{GRH, wire.GRHLen, treeGRH},
}

func treeERF(t *Tree, b []byte) {
	t.dec("erf.types.type", uint64(b[8]&0x7f))
	t.dec("erf.rlen", uint64(binary.BigEndian.Uint16(b[10:])))
	t.dec("erf.wlen", uint64(binary.BigEndian.Uint16(b[14:])))
}

func treeEthernet(t *Tree, b []byte) {
	t.text("eth.dst", macString(b))
	t.text("eth.src", macString(b[6:]))
	t.hex("eth.type", 4, uint64(binary.BigEndian.Uint16(b[12:])))
}

func treeCooked(t *Tree, b []byte) {
	t.dec("sll.pkttype", uint64(binary.BigEndian.Uint16(b)))
	t.dec("sll.hatype", uint64(binary.BigEndian.Uint16(b[2:])))
	t.dec("sll.halen", uint64(binary.BigEndian.Uint16(b[4:])))
	t.hex("sll.etype", 4, uint64(binary.BigEndian.Uint16(b[14:])))
}

func treeCooked2(t *Tree, b []byte) {
	t.hex("sll.etype", 4, uint64(binary.BigEndian.Uint16(b)))
	t.dec("sll.ifindex", uint64(binary.BigEndian.Uint32(b[4:])))
	t.dec("sll.hatype", uint64(binary.BigEndian.Uint16(b[8:])))
	t.dec("sll.pkttype", uint64(b[10]))
	t.dec("sll.halen", uint64(b[11]))
}

func treeVLAN(t *Tree, b []byte) {
	tci := binary.BigEndian.Uint16(b)
	t.dec("vlan.priority", uint64(tci>>13))
	t.dec("vlan.dei", uint64(tci>>12&1))
	t.dec("vlan.id", uint64(tci&0xfff))
	t.hex("vlan.etype", 4, uint64(binary.BigEndian.Uint16(b[2:])))
}

func treeServiceVLAN(t *Tree, b []byte) {
	tci := binary.BigEndian.Uint16(b)
	t.dec("ieee8021ad.priority", uint64(tci>>13))
	t.dec("ieee8021ad.dei", uint64(tci>>12&1))
	t.dec("ieee8021ad.id", uint64(tci&0xfff))
}

var ecnNames = [4]string{"Not-ECT", "ECT(1)", "ECT(0)", "CE"}

func treeIPv4(t *Tree, b []byte) {
	t.dec("ip.version", uint64(b[0]>>4))
	t.dec("ip.hdr_len", uint64(b[0]&0xf)*4)
	t.dec("ip.dsfield.dscp", uint64(b[1]>>2))
	t.dec("ip.dsfield.ecn", uint64(b[1]&3))
	t.mean(ecnNames[b[1]&3])
	t.dec("ip.len", uint64(binary.BigEndian.Uint16(b[2:])))
	t.hex("ip.id", 4, uint64(binary.BigEndian.Uint16(b[4:])))
	t.bool("ip.flags.df", b[6]&0x40 != 0)
	t.bool("ip.flags.mf", b[6]&0x20 != 0)
	t.dec("ip.frag_offset", uint64(binary.BigEndian.Uint16(b[6:])&0x1fff)*8)
	t.dec("ip.ttl", uint64(b[8]))
	t.dec("ip.proto", uint64(b[9]))
	t.hex("ip.checksum", 4, uint64(binary.BigEndian.Uint16(b[10:])))
	t.text("ip.src", ipString(b[12:16]))
	t.text("ip.dst", ipString(b[16:20]))
}

func treeIPv6(t *Tree, b []byte) {
	w := binary.BigEndian.Uint32(b)
	t.dec("ipv6.version", uint64(w>>28))
	t.hex("ipv6.tclass", 2, uint64(w>>20&0xff))
	t.mean(ecnNames[w>>20&3])
	t.hex("ipv6.flow", 5, uint64(w&0xfffff))
	t.dec("ipv6.plen", uint64(binary.BigEndian.Uint16(b[4:])))
	t.dec("ipv6.nxt", uint64(b[6]))
	t.dec("ipv6.hlim", uint64(b[7]))
	t.text("ipv6.src", ipString(b[8:24]))
	t.text("ipv6.dst", ipString(b[24:40]))
}

func treeUDP(t *Tree, b []byte) {
	t.dec("udp.srcport", uint64(binary.BigEndian.Uint16(b)))
	t.dec("udp.dstport", uint64(binary.BigEndian.Uint16(b[2:])))
	t.dec("udp.length", uint64(binary.BigEndian.Uint16(b[4:])))
	t.hex("udp.checksum", 4, uint64(binary.BigEndian.Uint16(b[6:])))
}

func treeTCP(t *Tree, b []byte) {
	t.dec("tcp.srcport", uint64(binary.BigEndian.Uint16(b)))
	t.dec("tcp.dstport", uint64(binary.BigEndian.Uint16(b[2:])))
	t.dec("tcp.seq_raw", uint64(binary.BigEndian.Uint32(b[4:])))
	t.dec("tcp.ack_raw", uint64(binary.BigEndian.Uint32(b[8:])))
}

func treeGRE(t *Tree, b []byte) {
	t.hex("gre.proto", 4, uint64(binary.BigEndian.Uint16(b[2:])))
	at := greLen
	if b[0]&0x80 != 0 {
		at += 4
	}
	if b[0]&0x20 != 0 && at+4 <= len(b) {
		t.hex("gre.key", 8, uint64(binary.BigEndian.Uint32(b[at:])))
	}
}

func treeVXLAN(t *Tree, b []byte) {
	t.dec("vxlan.vni", uint64(binary.BigEndian.Uint32(b[4:])>>8))
}

func treeERSPAN(t *Tree, b []byte) {
	t.dec("erspan.version", uint64(b[0]>>4))
	t.dec("erspan.vlan", uint64(binary.BigEndian.Uint16(b)&0xfff))
	t.dec("erspan.spanid", uint64(binary.BigEndian.Uint16(b[2:])&0x3ff))
}

func treeLRH(t *Tree, b []byte) {
	h, _ := wire.ParseLRH(b)
	t.dec("infiniband.lrh.vl", uint64(h.VL))
	t.dec("infiniband.lrh.lver", uint64(h.LVer))
	t.dec("infiniband.lrh.sl", uint64(h.SL))
	t.dec("infiniband.lrh.lnh", uint64(h.LNH))
	t.dec("infiniband.lrh.dlid", uint64(h.DLID))
	t.dec("infiniband.lrh.pktlen", uint64(h.PktLen))
	t.dec("infiniband.lrh.slid", uint64(h.SLID))
}

func treeRWH(t *Tree, b []byte) {
	t.hex("infiniband.rwh.etype", 4, uint64(binary.BigEndian.Uint16(b[2:])))
}

func treeGRH(t *Tree, b []byte) {
	h, _ := wire.ParseGRH(b)
	t.dec("infiniband.grh.ipver", uint64(h.IPVer))
	t.dec("infiniband.grh.tclass", uint64(h.TClass))
	t.dec("infiniband.grh.flowlabel", uint64(h.FlowLabel))
	t.dec("infiniband.grh.paylen", uint64(h.PayLen))
	t.dec("infiniband.grh.nxthdr", uint64(h.NxtHdr))
	t.dec("infiniband.grh.hoplmt", uint64(h.HopLmt))
	t.text("infiniband.grh.sgid", ipString(h.SGID[:]))
	t.text("infiniband.grh.dgid", ipString(h.DGID[:]))
}
