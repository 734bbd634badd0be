package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"testing"
)

// TestPutGRHGolden: the first datagram of a capture over IPv4 and over IPv6, and
// a RoCE v1 packet.
func TestPutGRHGolden(t *testing.T) {
	tests := []struct {
		name  string
		frame []byte
		want  string
		path  Path
	}{
		{
			name: "ud_send_v4", frame: readCapture(t, "testdata/captures/ud_send_v4.pcap")[0],
			want: `0000000000000000000000000000000000000000
				45000034786340004011a6ffc0a84d02c0a84d03`,
			path: Path{
				Framing: FramingV2IPv4, HopLimit: 64, Src: gid("192.168.77.2"),
				Dst: gid("192.168.77.3"),
			},
		},
		{
			name: "ud_mcast_v4", frame: readCapture(t, "testdata/captures/ud_mcast_v4.pcap")[0],
			want: `0000000000000000000000000000000000000000
				45000098aeec40000111cbb9c0a84d02ef010203`,
			path: Path{
				Framing: FramingV2IPv4, HopLimit: 1, Src: gid("192.168.77.2"),
				Dst: gid("239.1.2.3"),
			},
		},
		{
			name: "ud_send_v6", frame: readCapture(t, "testdata/captures/ud_send_v6.pcap")[0],
			want: `6000000000201140fd770000000000000000000000000002
				fd770000000000000000000000000003`,
			path: Path{
				Framing: FramingV2IPv6, HopLimit: 64, Src: gid("fd77::2"), Dst: gid("fd77::3"),
			},
		},
		{
			name: "RoCE v1", frame: build(t, FramingV1, UDSendOnly, 8),
			want: `6021234500201b40fe80000000000000000000fffe000001
				fe80000000000000000000fffe000002`,
			path: Path{
				Framing: FramingV1, TClass: 2, FlowLabel: 0x12345, HopLimit: 64,
				Src: gid("fe80::ff:fe00:1"), Dst: gid("fe80::ff:fe00:2"),
			},
		},
	}
	for _, tt := range tests {
		var p Packet
		if r := p.Decode(tt.frame, nil); r != OK || !p.Spec.Has(HasDETH) {
			t.Fatalf("%s: %s", tt.name, r)
		}
		got := bytes.Repeat([]byte{0xa5}, GRHLen+1)
		p.PutGRH(got)
		if want := append(unhex(t, tt.want), 0xa5); !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %x\nwant %x", tt.name, got, want)
		}
		if path, err := ParseReplyGRH(got); err != nil || path != tt.path {
			t.Errorf("%s came by\n%+v, %v, want\n%+v", tt.name, path, err, tt.path)
		}
	}
}

func gid(addr string) GID { return GIDFromAddr(netip.MustParseAddr(addr)) }

// TestGRHCaptures: the bytes before every captured packet lead back to it.
func TestGRHCaptures(t *testing.T) {
	captures(t, func(name string, frames [][]byte) {
		for i, frame := range frames {
			var p Packet
			p.Decode(frame, nil)
			var b [GRHLen]byte
			p.PutGRH(b[:])
			want := pathOf(&p)
			want.SrcMAC, want.DstMAC, want.SrcPort = [6]byte{}, [6]byte{}, 0
			if got, err := ParseReplyGRH(b[:]); err != nil || got != want {
				t.Errorf("%s frame %d: %+v, %v, want %+v", name, i+1, got, err, want)
			}
		}
	})
}

// TestPutGRHZero: where there is no such header the bytes are zero.
func TestPutGRHZero(t *testing.T) {
	var native, refused Packet
	native.DecodeNative(build(t, FramingNative, UDSendOnly, 8), nil)
	refused.Decode(build(t, FramingV1, UDSendOnly, 8), nil)
	refused.Decode(nil, nil)
	for name, p := range map[string]*Packet{"native": &native, "refused": &refused, "zero": {}} {
		b := bytes.Repeat([]byte{0xa5}, GRHLen)
		if p.PutGRH(b); !bytes.Equal(b, make([]byte, GRHLen)) {
			t.Errorf("%s: %x, want zeros", name, b)
		}
		if path, err := ParseReplyGRH(b); !errors.Is(err, ErrGRH) || path != (Path{}) {
			t.Errorf("%s: %+v, %v, want ErrGRH", name, path, err)
		}
	}
	var p Packet
	p.DecodeNative(build(t, FramingNativeGRH, UDSendOnly, 8), nil)
	b := make([]byte, GRHLen)
	p.PutGRH(b)
	if path, err := ParseReplyGRH(b); err != nil || path.Src != p.Src || path.Dst != p.Dst {
		t.Errorf("native with GRH came from %s to %s, %v, want %s and %s", path.Src, path.Dst,
			err, p.Src, p.Dst)
	}
}

// TestParseReplyGRH: which header it is.
func TestParseReplyGRH(t *testing.T) {
	const ip4 = "45000034786340004011a6ffc0a84d02c0a84d03"
	tests := []struct {
		name, hex string
		want      Framing
	}{
		{"IPv4 behind what looks like IPv6", "6021234500201140" + ones(12) + ip4, FramingV2IPv4},
		{
			"IPv6 from ..:4500:34.. with another checksum",
			"6021234500201140" + ones(12) + "45000034786340004011a6fec0a84d02c0a84d03",
			FramingV2IPv6,
		},
		{
			"GRH from ..:4500:34.. of protocol 6", "6021234500201b40" + ones(12) +
				"450000347863400040" + "06a70a" + "c0a84d02c0a84d03", FramingV1,
		},
		{"IPv4 with options", ones(20) + "46" + ip4[2:], FramingNone},
		{"IPv4 with a wrong checksum", zeros(20) + "45000034786340004011a6fec0a84d02c0a84d03", 0},
		{"IPv6 before TCP", "6021234500200640" + ones(32), FramingNone},
		{"version 5", "5021234500201140" + ones(32), FramingNone},
		{"39 bytes", zeros(19) + ip4, FramingNone},
		{"nothing", "", FramingNone},
	}
	for _, tt := range tests {
		b := unhex(t, tt.hex)
		wantErr := ErrGRH
		if len(b) < GRHLen {
			wantErr = ErrShort
		}
		if tt.want != FramingNone {
			wantErr = nil
		}
		got, err := ParseReplyGRH(b)
		if got.Framing != tt.want || !errors.Is(err, wantErr) {
			t.Errorf("%s: %s, %v, want %s, %v", tt.name, got.Framing, err, tt.want, wantErr)
		}
	}
	// The one that protocol 6 decides is otherwise a right IPv4 header.
	h := [ipv4Len]byte(unhex(t, tests[2].hex)[grhOffIPv4:])
	if !ipv4SumOK(&h) {
		t.Errorf("%x has checksum 0x%04x, want 0x%04x", h, binary.BigEndian.Uint16(h[10:]),
			binary.BigEndian.Uint16(h[10:])+^ipv4Sum(&h))
	}
}

func ones(n int) string  { return hex.EncodeToString(bytes.Repeat([]byte{0xff}, n)) }
func zeros(n int) string { return hex.EncodeToString(make([]byte, n)) }
