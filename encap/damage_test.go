package encap

import (
	"bytes"
	"testing"

	"xroce/roce/wire"
)

// TestTruncated: of every packet no part is one, but where the format leaves the length to
// others: there the datagram is shorter.
func TestTruncated(t *testing.T) {
	for _, v := range vectors {
		b := unhex(t, v.packet)
		inner := unhex(t, v.datagram)
		for n := range b {
			var p Packet
			r := decode(&p, v.format, b[:n:n])
			switch {
			case r != OK && p.Datagram == nil:
			case r == OK && v.format > RawGRH && v.format != VNIC &&
				bytes.HasPrefix(inner, p.Datagram):
			case r == OK && v.format == VNIC && n%vnicAlign == 0:
				// The last byte of a part is taken for the tail: nothing but the ICRC of
				// the packet tells.
			default:
				t.Errorf("%s: %d of %d bytes: %s, datagram of %d", v.name, n, len(b), r, p.Len())
			}
			if v.format <= RawGRH && r != Truncated {
				t.Errorf("%s: %d of %d bytes: %s", v.name, n, len(b), r)
			}
		}
	}
}

// TestPieces: a native packet may come in two pieces, of which the first has the headers.
func TestPieces(t *testing.T) {
	for _, v := range vectors {
		if v.format > RawGRH {
			continue
		}
		b := append(unhex(t, v.packet), make([]byte, 20)...) // padding of Ethernet
		headers := v.format.Spec().HeaderLen
		if v.format == RawIPv6 {
			headers += IPv6.MinLen() // which says how long the datagram is
		}
		for n := range b {
			var p Packet
			r := p.DecodeNative(b[:n], b[n:])
			switch {
			case n < headers && r == SplitHeader:
			case n >= headers && r == OK && p.Len() == len(unhex(t, v.datagram)):
				got := make([]byte, p.Len())
				p.CopyTo(got)
				if !bytes.Equal(got, unhex(t, v.datagram)) {
					t.Errorf("%s cut at %d: it differs", v.name, n)
				}
			default:
				t.Errorf("%s cut at %d: %s, %d bytes", v.name, n, r, p.Len())
			}
		}
	}
}

// TestEveryBit: a native packet in which any bit is another is refused. The other formats have
// the ICRC around them: a bit of their headers makes a packet that is refused or has the same
// datagram, and one of the datagram is one of the datagram.
func TestEveryBit(t *testing.T) {
	for _, v := range vectors {
		b, inner := unhex(t, v.packet), unhex(t, v.datagram)
		headers := v.format.Spec().HeaderLen
		for bit := range 8 * len(b) {
			at, mask := bit/8, byte(1)<<(bit%8)
			b[at] ^= mask
			var p Packet
			r := decode(&p, v.format, b)
			want := bytes.Clone(inner)
			switch {
			case v.format <= RawGRH:
				if r == OK {
					t.Errorf("%s: bit %d unnoticed", v.name, bit)
				}
			case r != OK:
			case at < headers:
				if !bytes.Equal(p.Datagram, inner) {
					t.Errorf("%s: bit %d of the headers: %x", v.name, bit, p.Datagram)
				}
			case at < headers+len(inner):
				want[at-headers] ^= mask
				if !bytes.Equal(p.Datagram, want) {
					t.Errorf("%s: bit %d: %x, want %x", v.name, bit, p.Datagram, want)
				}
			case at < len(b)-vnicTail: // padding
				if !bytes.Equal(p.Datagram, inner) {
					t.Errorf("%s: bit %d of the padding: %x", v.name, bit, p.Datagram)
				}
			}
			b[at] ^= mask
		}
	}
}

// TestRefused: what is wrong with a packet is said by name.
func TestRefused(t *testing.T) {
	lrh := func(lnh, words byte) []byte { return []byte{0, lnh, 0, 2, 0, words, 0, 1} }
	rwh := func(pad byte, etherType uint16) []byte {
		return []byte{0, pad, byte(etherType >> 8), byte(etherType)}
	}
	native := func(parts ...[]byte) []byte { return nativeOf(bytes.Join(parts, nil)) }
	grh := func(version, next, payLen byte) []byte {
		b := make([]byte, wire.GRHLen)
		b[0], b[5], b[6] = version<<4, payLen, next
		return b
	}
	frame := make([]byte, 16)
	ipv6 := unhex(t, goldenIPv6+"00")
	jumbo := bytes.Clone(ipv6)
	jumbo[4], jumbo[5] = 0, 0
	for _, tt := range []struct {
		name string
		f    Format
		b    []byte
		want Reason
	}{
		{"empty", Raw, nil, Truncated},
		{"link version", Raw, native([]byte{1}, lrh(0, 7)[1:], rwh(4, 0x6558), frame), BadLRH},
		{"IBA local", Raw, native(lrh(2, 7), rwh(4, 0x6558), frame), NotRaw},
		{"IBA global", Raw, native(lrh(3, 16), grh(6, 0x1b, 16), frame), NotRaw},
		{"GRH of version 5", Raw, native(lrh(3, 16), grh(5, 143, 16), frame), BadGRH},
		{"GRH before UDP", Raw, native(lrh(3, 16), grh(6, 17, 16), frame), UnknownType},
		{"GRH too long", Raw, native(lrh(3, 16), grh(6, 143, 17), frame), BadLength},
		{"GRH too short", Raw, native(lrh(3, 16), grh(6, 143, 12), frame), BadLength},
		{"EtherType", Raw, native(lrh(0, 7), rwh(4, 0x8915), frame), UnknownType},
		{"PktLen 0", Raw, native(lrh(0, 0)), BadLength},
		{"PktLen of an LRH", Raw, native(lrh(0, 2)), BadLength},
		{"no datagram", Raw, native(lrh(0, 3), rwh(4, 0x6558)), TooShort},
		{"more padding than bytes", Raw, native(lrh(0, 3), rwh(5, 0x6558)), BadLength},
		{"a frame of 13", Raw, native(lrh(0, 7), rwh(7, 0x6558), frame), TooShort},
		{"IPv6 as IPv4", Raw, native(lrh(0, 16), rwh(4, 0x0800), ipv6), BadIPVersion},
		{"PktLen too small", Raw, native(lrh(1, 14), ipv6), BadLength},
		{"jumbogram", Raw, native(lrh(1, 15), jumbo), BadLength},
		{"IPv6 header cut", Raw, native(lrh(1, 11), ipv6[:36]), TooShort},
		{"segment without word", Raw, native(lrh(0, 3), rwh(4, 0x88b6)), Truncated},
		{
			"empty segment", Raw, native(lrh(0, 4), rwh(4, 0x88b6), []byte{0xc0, 0x20, 0, 1}),
			TooShort,
		},
		{
			"segment without a pad count", Raw,
			native(lrh(0, 5), rwh(0, 0x88b6), []byte{0xc0, 0x20, 0, 1, 1, 2, 3, 4}), BadLength,
		},
		{"segment of what", Raw, native(lrh(0, 4), rwh(4, 0x88b6), frame[:4]), BadSignature},
		{"word cut", EoIB, []byte{0xc0, 0, 0}, Truncated},
		{"signature", EoIB, append([]byte{0x80, 0, 0, 0}, frame...), BadSignature},
		{"version", EoIB, append([]byte{0xd0, 0, 0, 0}, frame...), BadVersion},
		{"nothing in it", EoIB, []byte{0xc0, 0, 0, 0}, TooShort},
		{"a frame of 13", EoIB, append([]byte{0xc0, 0, 0, 0}, frame[:13]...), TooShort},
		{"FCS of a frame of 12", EoIB, append([]byte{0xc0, 0x40, 0, 0}, frame...), TooShort},
		{"FCS", EoIB, append([]byte{0xc0, 0x40, 0, 0}, make([]byte, 18)...), BadFCS},
		{"IPoIB cut", IPoIB, []byte{8, 0, 0}, Truncated},
		{"IPoIB of a frame", IPoIB, append([]byte{0x65, 0x58, 0, 0}, frame...), UnknownType},
		{"ARP when connected", IPoIBConnected, append([]byte{8, 6, 0, 0}, frame...), UnknownType},
		{"VNIC cut", VNIC, make([]byte, 8), Truncated},
		{"VNIC odd", VNIC, append([]byte{0, 0, 0, 1, 0xc0, 0, 0, 0}, frame...)[:23], BadLength},
		{"VNIC of EoIB", VNIC, append([]byte{0xc0, 0, 0, 1}, frame[:12]...), BadSignature},
		{"VNIC version", VNIC, append([]byte{0, 0, 0, 1, 0xd0, 0, 0, 0}, frame...), BadVersion},
		{
			"VNIC all padding", VNIC,
			[]byte{0, 0, 0, 1, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7},
			TooShort,
		},
		{"native as a payload", Raw, nil, Truncated},
	} {
		var p Packet
		if r := decode(&p, tt.f, tt.b); r != tt.want || p.Datagram != nil || p.Kind != 0 {
			t.Errorf("%s: %s, want %s", tt.name, r, tt.want)
		}
	}
	var p Packet
	if r := p.Decode(Raw, frame); r != UnknownType {
		t.Errorf("a native format as a payload: %s", r)
	}
	wrong := packetOf(t, Raw, Ethernet, 60)
	wrong[len(wrong)-1] ^= 1
	if r := p.DecodeNative(wrong, nil); r != BadVCRC {
		t.Errorf("a wrong VCRC: %s", r)
	}
}

// TestForeign: what others send that do not know our pad count: IP and ARP tell their length,
// and behind a frame its padding stays, as that of Ethernet does.
func TestForeign(t *testing.T) {
	arp := unhex(t, "0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002")
	for _, tt := range []struct {
		kind  Kind
		inner []byte
		left  int // padding that stays
	}{
		{IPv4, unhex(t, goldenIPv4), 0},
		{IPv6, unhex(t, goldenIPv6), 0},
		{ARP, arp, 0},
		{Ethernet, unhex(t, goldenFrame), 3},
	} {
		tp := template(Raw)
		b := make([]byte, tp.Room)
		n, r := tp.Put(b, tt.kind, tt.inner)
		if r != OK {
			t.Fatal(r)
		}
		b[wire.LRHLen+rwhOffPad] = 0
		wire.PutVCRC(b[:n])
		var p Packet
		if r := p.DecodeNative(b[:n], nil); r != OK || p.Len() != len(tt.inner)+tt.left {
			t.Errorf("%s: %s, %d bytes of %d", tt.kind, r, p.Len(), len(tt.inner))
		}
	}
	// The other reserved bits of RWH, LRH and IPoIB mean nothing.
	b := packetOf(t, Raw, Ethernet, 61)
	b[1] |= 0xc
	b[4] |= 0xf8
	b[8], b[9] = 0xff, b[9]|0xf8
	wire.PutVCRC(b)
	var p Packet
	if r := p.DecodeNative(b, nil); r != OK || p.Len() != 61 {
		t.Errorf("reserved bits: %s, %d bytes", r, p.Len())
	}
	b = packetOf(t, IPoIB, IPv4, 61)
	b[2], b[3] = 0xff, 0xff
	if r := p.Decode(IPoIB, b); r != OK || p.Len() != 61 {
		t.Errorf("reserved bits of IPoIB: %s, %d bytes", r, p.Len())
	}
}

// TestFCS: an FCS that EoIB says is there is checked and taken off.
func TestFCS(t *testing.T) {
	inner := append(make([]byte, 14), "123456789"...)
	b := append([]byte{0xc0, 0x40, 0, 0}, inner...)
	b = append(b, 0xcc, 0x09, 0x5d, 0x5f) // by zlib
	var p Packet
	if r := p.Decode(EoIB, b); r != OK || !bytes.Equal(p.Datagram, inner) || p.FCS {
		t.Errorf("%s, %x", r, p.Datagram)
	}
}
