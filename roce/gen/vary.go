package gen

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"xroce/roce/wire"
)

// Field is a part of a frame that may vary.
type Field uint8

// The fields. Those of RoCE come last.
const (
	FieldSrcMAC Field = iota
	FieldDstMAC
	FieldVLAN // the control information
	FieldTOS  // TOS or traffic class
	FieldTTL  // TTL or hop limit
	FieldSrcIP
	FieldDstIP
	FieldSrcPort
	FieldDstPort
	FieldDestQP
	FieldRKey
	FieldVA
	FieldPKey
	numFields

	firstRoCE = FieldDestQP
)

var fieldNames = [numFields]string{
	"src_mac", "dst_mac", "vlan", "tos", "ttl", "src_ip", "dst_ip", "src_port", "dst_port",
	"dest_qp", "rkey", "va", "pkey",
}

// String is the name of the field.
func (f Field) String() string {
	if f < numFields {
		return fieldNames[f]
	}
	return fmt.Sprintf("field(%d)", uint8(f))
}

// Vary is a field with what it takes. Of an IPv6 address the lower half varies.
type Vary struct {
	Field  Field
	Values Values

	v4, v6 bool // what was read had addresses of these versions of IP
}

// ParseVary reads a field and its values, as src_port=1024-2047 or src_ip=random:10.0.0.1-10.0.0.9.
func ParseVary(text string, seed uint64) (v Vary, err error) {
	name, values, ok := strings.Cut(text, "=")
	i := slices.Index(fieldNames[:], name)
	if !ok || i < 0 {
		return v, fmt.Errorf("gen: %q is no field with values: fields are %s", text,
			strings.Join(fieldNames[:], ", "))
	}
	v.Field = Field(i)
	var parse func(string) (uint64, error)
	switch v.Field {
	case FieldSrcMAC, FieldDstMAC:
		parse = parseMAC
	case FieldSrcIP, FieldDstIP:
		parse = v.parseIP
	}
	v.Values, err = ParseValues(values, seed+uint64(i), parse)
	return v, err
}

func parseMAC(s string) (n uint64, err error) {
	parts := strings.Split(s, ":")
	if len(parts) != 6 {
		return 0, fmt.Errorf("gen: %q is no MAC address", s)
	}
	for _, p := range parts {
		b, err := strconv.ParseUint(p, 16, 8)
		if err != nil {
			return 0, fmt.Errorf("gen: %q is no MAC address", s)
		}
		n = n<<8 | b
	}
	return n, nil
}

// parseIP reads an address, and notes its version.
func (v *Vary) parseIP(s string) (uint64, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return 0, fmt.Errorf("gen: %q is no IP address", s)
	}
	v.v4, v.v6 = v.v4 || a.Is4(), v.v6 || a.Is6()
	if a.Is4() {
		b := a.As4()
		return uint64(binary.BigEndian.Uint32(b[:])), nil
	}
	b := a.As16()
	return binary.BigEndian.Uint64(b[8:]), nil
}

// A patch is where in the bytes of a frame a field lies.
type patch struct {
	at, n  int
	class  bool // a traffic class, which lies across two bytes (RFC 8200, 3)
	values Values
}

// newPatch finds a field of the headers. RoCE fields have none.
func (s *stack) newPatch(v Vary) (p patch, err error) {
	p = patch{values: v.Values}
	ip := func(v4, v6, n4, n6 int) {
		p.at, p.n = s.net+v4, n4
		if s.ipv6 {
			p.at, p.n = s.net+v6, n6
		}
	}
	switch f := v.Field; {
	case f == FieldDstMAC:
		p.at, p.n = 0, 6
	case f == FieldSrcMAC:
		p.at, p.n = 6, 6
	case f == FieldVLAN && s.tag > 0:
		p.at, p.n = s.tag, 2
	case f == FieldVLAN:
		return p, wrong("%s varies and there is no VLAN", f)
	case s.net == 0:
		return p, wrong("%s varies and there is no IP header", f)
	case v.v4 && s.ipv6:
		return p, wrong("%s varies over addresses of IPv4, and frames have those of IPv6", f)
	case v.v6 && !s.ipv6:
		return p, wrong("%s varies over addresses of IPv6, and frames have those of IPv4", f)
	case f == FieldTOS:
		p.at, p.n, p.class = s.net, 1, s.ipv6
		if !s.ipv6 {
			p.at++
		}
	case f == FieldTTL:
		ip(8, 7, 1, 1)
	case f == FieldSrcIP:
		ip(12, 16, 4, 8)
	case f == FieldDstIP:
		ip(16, 32, 4, 8)
	case s.udp == 0:
		return p, wrong("%s varies and there is no UDP header", f)
	case f == FieldSrcPort:
		p.at, p.n = s.udp, 2
	case f == FieldDstPort:
		p.at, p.n = s.udp+2, 2
	default:
		return p, wrong("%s varies and frames are no RoCE packets", f)
	}
	return p, v.fits(p.n)
}

// fits refuses values of more than so many bytes.
func (v *Vary) fits(bytes int) error {
	if bytes < 8 && v.Values.Max()>>(8*bytes) != 0 {
		return wrong("%s has %d bytes, and %#x does not fit", v.Field, bytes, v.Values.Max())
	}
	return nil
}

// apply writes the next value.
func (p *patch) apply(frame []byte) {
	v := p.values.Next()
	if p.class {
		frame[p.at] = frame[p.at]&0xf0 | byte(v>>4)
		frame[p.at+1] = byte(v)<<4 | frame[p.at+1]&0xf
		return
	}
	b := frame[p.at : p.at+p.n]
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte(v)
		v >>= 8
	}
}

// roceLen is how many bytes a field of RoCE packets has.
var roceLen = map[Field]int{FieldDestQP: 3, FieldRKey: 4, FieldVA: 8, FieldPKey: 2}

// set changes a field of RoCE packets.
func (r *RoCE) set(f Field, v uint64) {
	switch f {
	case FieldDestQP:
		r.DestQP = uint32(v)
	case FieldRKey:
		r.RKey = uint32(v)
	case FieldVA:
		r.VA = v
	case FieldPKey:
		r.PKey = uint16(v)
	}
}

// icrcOf seals a RoCE frame whose headers were changed.
func icrcOf(framing wire.Framing, frame []byte, net int) {
	end := len(frame) - wire.ICRCLen
	binary.LittleEndian.PutUint32(frame[end:], wire.ICRC(framing, frame[net:end], nil))
}
