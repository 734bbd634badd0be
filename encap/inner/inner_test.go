package inner

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/encap"
)

// TestHeaders finds them behind any number of tags, and in no packet that ends within them.
func TestHeaders(t *testing.T) {
	for tags := -1; tags <= maxTags; tags++ {
		for _, v6 := range []bool{false, true} {
			b, k := tcpPacket(t, v6, tags, 100, nil), kindFor(v6, tags)
			h := Parse(k, b)
			want := Headers{Protocol: ProtocolTCP, Version: 4, EtherType: TypeIPv4, End: len(b)}
			if tags >= 0 {
				want.L3 = EthernetLen + tags*tagLen
			}
			want.L4 = want.L3 + ipv4Len
			if v6 {
				want.Version, want.EtherType, want.L4 = 6, TypeIPv6, want.L3+ipv6Len
			}
			if h != want {
				t.Errorf("%d tags, IPv6 %v: %+v, want %+v", tags, v6, h, want)
			}
			for n := range b {
				if h := Parse(k, b[:n:n]); h.Version != 0 {
					t.Errorf("%d of %d bytes: %+v", n, len(b), h)
				}
			}
		}
	}
}

// TestExtensionHeaders are looked through, up to a bound.
func TestExtensionHeaders(t *testing.T) {
	extension := func(next, kind byte, count int) []byte {
		rest := gopacket.Payload(make([]byte, 8*count+tcpLen))
		b := packet(t, true, -1, layers.IPProtocolTCP, rest)
		b[6] = kind
		for i := range count {
			b[ipv6Len+8*i] = kind
		}
		b[ipv6Len+8*(count-1)] = next
		return b
	}
	for _, kind := range []byte{hopByHop, routing, destination, fragment} {
		h := Parse(encap.IPv6, extension(ProtocolTCP, kind, 1))
		if h.L4 != ipv6Len+8 || h.Protocol != ProtocolTCP || h.Fragment != (kind == fragment) {
			t.Errorf("behind %d: %+v", kind, h)
		}
	}
	b := extension(ProtocolTCP, fragment, 1)
	b[ipv6Len+2] = 1
	if h := Parse(encap.IPv6, b); h.L4 != 0 || !h.Fragment {
		t.Errorf("a later fragment: %+v", h)
	}
	if h := Parse(encap.IPv6, extension(ProtocolTCP, destination, maxExtensions)); h.L4 != 0 {
		t.Errorf("too many extension headers: %+v", h)
	}
}

// TestChecksum compares with the sum word by word.
func TestChecksum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
			if n%3 == 0 {
				b[i] = 0xff
			}
		}
		if got, want := Checksum(b), slowSum(b); got != want {
			t.Errorf("%d bytes: %04x, want %04x", n, got, want)
		}
		if n < 4 {
			continue
		}
		before, old := Checksum(b), binary.BigEndian.Uint16(b[2:])
		binary.BigEndian.PutUint16(b[2:], old+77)
		if got, want := update(before, old, old+77), slowSum(b); got != want {
			t.Errorf("%d bytes, one word changed: %04x, want %04x", n, got, want)
		}
	}
}

// TestSegments cuts packets and puts them together again: the payload is that of before, each
// checksum is right, and flags are where they belong.
func TestSegments(t *testing.T) {
	flags := func(h *layers.TCP) { h.FIN, h.PSH, h.CWR = true, true, true }
	for _, v6 := range []bool{false, true} {
		for tags := -1; tags <= maxTags; tags++ {
			for _, n := range []int{100, 999, 1000, 1001, 2000, 65000} {
				b, k := tcpPacket(t, v6, tags, n, flags), kindFor(v6, tags)
				payload := bytes.Clone(b[len(b)-n:])
				v := uncut(b, k, 1000)
				cutAndCompare(t, v, k, b, payload)
			}
		}
	}
}

func cutAndCompare(t *testing.T, v VNet, k encap.Kind, b, payload []byte) {
	t.Helper()
	s, ok := v.Cut(k, b)
	if !ok {
		t.Fatal("not cut")
	}
	buf := make([]byte, s.Longest())
	at, seq := 0, uint32(1<<32-1000)
	for i := 0; ; i++ {
		n := s.Next(buf)
		if n == 0 {
			break
		}
		segment := buf[:n]
		h := Parse(k, segment)
		start, length := h.tcp(segment)
		data := segment[start+length:]
		if h.End != n || !checksums(segment, &h) {
			t.Fatalf("segment %d: %+v of %d bytes, or a checksum is wrong", i, h, n)
		}
		if got := binary.BigEndian.Uint32(segment[start+tcpSeq:]); got != seq+uint32(at) {
			t.Errorf("segment %d: sequence number %d", i, got)
		}
		if h.Version == 4 {
			if id := binary.BigEndian.Uint16(segment[h.L3+4:]); id != uint16(65535+i) {
				t.Errorf("segment %d: ID %d", i, id)
			}
		}
		f := segment[start+tcpFlags]
		last := at+len(data) == len(payload)
		if (f&flagCWR != 0) != (i == 0) || (f&(flagFIN|flagPSH) != 0) != last {
			t.Errorf("segment %d: flags %02x", i, f)
		}
		if !bytes.Equal(data, payload[at:][:len(data)]) {
			t.Fatalf("segment %d: other payload", i)
		}
		at += len(data)
	}
	if at != len(payload) {
		t.Errorf("%d of %d bytes", at, len(payload))
	}
}

// TestComplete completes checksums as the kernel leaves them, and refuses what is elsewhere.
func TestComplete(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		b := tcpPacket(t, v6, 0, 77, nil)
		v := uncut(b, encap.Ethernet, 0)
		if !v.Complete(b) {
			t.Error("not completed")
		}
		if h := Parse(encap.Ethernet, b); !checksums(b, &h) {
			t.Error("a wrong checksum")
		}
		v.ChecksumStart = uint16(len(b) - tcpChecksum - 1)
		if v.Complete(b) {
			t.Error("completed behind the end")
		}
	}
}

// TestHint says for every packet that is cut what the kernel said.
func TestHint(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for tags := -1; tags <= maxTags; tags++ {
			b, k := tcpPacket(t, v6, tags, 5000, nil), kindFor(v6, tags)
			want := uncut(b, k, 1400)
			want.GSO |= GSOECN
			got, ok := want.Hint().VNet(k, b)
			if !ok || got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			var bytes [VNetLen]byte
			want.Put(bytes[:])
			if again := ParseVNet(bytes[:]); again != want {
				t.Errorf("%+v, want %+v", again, want)
			}
		}
	}
}

// TestWrongHints do not fit the datagram and are refused.
func TestWrongHints(t *testing.T) {
	tcp := tcpPacket(t, false, 0, 500, nil)
	udp := packet(t, false, 0, layers.IPProtocolUDP, &layers.UDP{}, gopacket.Payload("x"))
	for _, tt := range []struct {
		name string
		hint Hint
		b    []byte
	}{
		{"cut without checksum", hintTCP | 1000<<hintShift, tcp},
		{"cut to nothing", hintTCP | hintChecksum, tcp},
		{"a size and nothing to cut", hintChecksum | 1000<<hintShift, tcp},
		{"unknown bits", hintChecksum | 1<<8, tcp},
		{"unknown way to cut", 5 | hintChecksum | 1000<<hintShift, tcp},
		{"UDP is not cut", hintTCP | hintChecksum | 1000<<hintShift, udp},
		{"no transport", hintChecksum, tcp[:EthernetLen+ipv4Len]},
	} {
		if v, ok := tt.hint.VNet(encap.Ethernet, tt.b); ok {
			t.Errorf("%s: %+v", tt.name, v)
		}
	}
	if v, ok := hintChecksum.VNet(encap.Ethernet, udp); !ok || v.ChecksumOffset != udpChecksum {
		t.Errorf("the checksum of UDP: %+v %v", v, ok)
	}
}

// FuzzInner gives any bytes and any words of a kernel or a peer: nothing panics, and what is cut
// is not longer than was said.
func FuzzInner(f *testing.F) {
	b := tcpPacket(f, false, 0, 3000, nil)
	v := uncut(b, encap.Ethernet, 1000)
	f.Add(b, uint8(encap.Ethernet), uint32(v.Hint()))
	f.Add(tcpPacket(f, true, -1, 300, nil), uint8(encap.IPv6), uint32(v.Hint()))
	f.Add(tcpPacket(f, true, 2, 300, nil), uint8(encap.Ethernet), uint32(hintChecksum))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8, hint uint32) {
		k := encap.Kind(kind % 6)
		h := Parse(k, b)
		if h.End > len(b) || h.L4 > h.End && h.L4 != 0 || h.L3 > len(b) {
			t.Fatalf("%+v of %d bytes", h, len(b))
		}
		if h.Version != 0 {
			if n := h.TooBig(make([]byte, TooBigLen), b, int(hint)); n > TooBigLen {
				t.Fatalf("an error of %d bytes", n)
			}
			h.ClampMSS(b, int(hint), false)
			h.Decapsulate(b, uint8(hint))
		}
		v, ok := Hint(hint).VNet(k, b)
		if !ok {
			return
		}
		if s, ok := v.Cut(k, b); ok {
			buf := make([]byte, s.Longest())
			for n := s.Next(buf); n > 0; n = s.Next(buf) {
				if n > len(buf) {
					t.Fatalf("a segment of %d bytes, the longest is %d", n, len(buf))
				}
			}
		}
		v.Complete(b)
	})
}
