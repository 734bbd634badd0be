package inner

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"xroce/encap"
)

// TestFragments cuts packets of any length, options and tags, also fragments, and puts them
// together again by their offsets.
func TestFragments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tags := rapid.IntRange(-1, 2).Draw(t, "tags") // -1: no frame
		kind, l3 := encap.IPv4, 0
		if tags >= 0 {
			kind, l3 = encap.Ethernet, EthernetLen+tags*tagLen
		}
		options := rapid.SampledFrom([]string{
			"", "\x94\x04\x00\x00", "\x07\x07\x04\x00\x00\x00\x00\x00",
			"\x01\x94\x04\x00\x00\x07\x03\x04", "\x94\x09\x00\x00",
		}).Draw(t, "options")
		first := ipv4Len + len(options)
		data := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "data")
		padding := rapid.IntRange(0, 9).Draw(t, "padding")
		mtu := rapid.IntRange(first+fragmentUnit, 1600).Draw(t, "mtu")
		offset := uint16(rapid.IntRange(0, 1000).Draw(t, "offset"))
		more := rapid.SampledFrom([]uint16{0, moreFragments}).Draw(t, "more")

		b := make([]byte, l3, l3+first+len(data)+padding)
		if tags >= 0 {
			at := EthernetLen - 2
			for range tags {
				binary.BigEndian.PutUint16(b[at:], TypeVLAN)
				at += tagLen
			}
			binary.BigEndian.PutUint16(b[at:], TypeIPv4)
		}
		ip := make([]byte, ipv4Len)
		ip[0], ip[8], ip[9] = byte(4<<4|first/4), 64, ProtocolUDP
		binary.BigEndian.PutUint16(ip[2:], uint16(first+len(data)))
		binary.BigEndian.PutUint16(ip[4:], 0x1234)
		binary.BigEndian.PutUint16(ip[6:], more|offset)
		copy(ip[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
		b = append(append(append(b, ip...), options...), data...)
		b = append(b, make([]byte, padding)...)
		h := Parse(kind, b)
		f, ok := h.Fragments(b, mtu)
		if !ok {
			t.Fatal("refused")
		}
		putTogether(t, &f, kind, b[:l3], data, mtu, offset, more)
	})
}

// putTogether compares what fragments carry with the data of the packet.
func putTogether(
	t *rapid.T, f *Fragments, kind encap.Kind, header, data []byte, mtu int, offset, more uint16,
) {
	dst := make([]byte, 1700)
	got := make([]byte, 0, len(data))
	for {
		n := f.Next(dst)
		if n == 0 {
			break
		}
		part := dst[:n]
		if n-len(header) > mtu || !bytes.Equal(part[:len(header)], header) {
			t.Fatalf("a fragment of %d bytes behind %x", n, part[:len(header)])
		}
		h := Parse(kind, part)
		ip := part[len(header):]
		size := int(ip[0]&0xf) * 4
		field := binary.BigEndian.Uint16(ip[6:])
		last := len(got)+n-len(header)-size == len(data)
		switch {
		case h.Version != 4 || h.End != n || Checksum(ip[:size]) != 0:
			t.Fatalf("no good packet: %x", ip[:size])
		case int(field&fragmentOffset) != int(offset)+len(got)/fragmentUnit:
			t.Fatalf("offset %d behind %d bytes", field&fragmentOffset, len(got))
		case field&moreFragments != 0 != (!last || more != 0):
			t.Fatalf("flags %04x of the last one (%t)", field, last)
		case !last && (n-len(header)-size)%fragmentUnit != 0:
			t.Fatalf("%d bytes, and it is not the last", n-len(header)-size)
		case binary.BigEndian.Uint16(ip[4:]) != 0x1234:
			t.Fatal("another identification")
		}
		got = append(got, ip[size:]...)
	}
	if !bytes.Equal(got, data) {
		t.Fatalf("%d bytes of %d", len(got), len(data))
	}
}

// TestNoFragments: what may not be cut, or cannot be, is not.
func TestNoFragments(t *testing.T) {
	good := make([]byte, 200)
	good[0], good[8], good[9] = 0x45, 64, ProtocolUDP
	good[3] = 200
	for name, tt := range map[string]struct {
		change func([]byte)
		mtu    int
		ok     bool
	}{
		"it may":         {func([]byte) {}, 100, true},
		"don't fragment": {func(b []byte) { b[6] = 0x40 }, 100, false},
		"no room":        {func([]byte) {}, 27, false},
		"IPv6":           {func(b []byte) { b[0] = 0x60 }, 100, false},
		"a short header": {func(b []byte) { b[0] = 0x44 }, 100, false},
	} {
		b := bytes.Clone(good)
		tt.change(b)
		h := Parse(encap.IPv4, b)
		if _, ok := h.Fragments(b, tt.mtu); ok != tt.ok {
			t.Errorf("%s: %t", name, ok)
		}
	}
}
