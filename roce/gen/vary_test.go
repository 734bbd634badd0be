package gen_test

import (
	"errors"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/roce/gen"
	"xroce/roce/wire"
)

// TestVaryTrafficClass: the traffic class of IPv6 varies, of UDP datagrams and of RoCE packets,
// and what lies beside it does not.
func TestVaryTrafficClass(t *testing.T) {
	v, err := gen.ParseVary("tos=0xff,0x12", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []gen.Kind{gen.KindUDP, gen.KindRoCE} {
		c := gen.Config{
			Kind: kind, Path: path(true, true), Sizes: gen.List(150), Vary: []gen.Vary{v},
		}
		c.Path.FlowLabel = 0xabcde
		f, frame := flow(t, c), make([]byte, maxFrame)
		for _, want := range []uint8{0xff, 0x12, 0xff} {
			b := frame[:f.Next(frame, 1)]
			p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
			ip, ok := p.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
			if !ok || ip.Version != 6 || ip.TrafficClass != want || ip.FlowLabel != 0xabcde {
				t.Fatalf("%s: %x", kind, b)
			}
			var packet wire.Packet
			if kind == gen.KindRoCE &&
				(packet.Decode(b, nil) != wire.OK || !packet.VerifyICRC()) {
				t.Errorf("%s: %x", kind, b)
			}
		}
	}
}

// TestVaryFamily: addresses of one version of IP do not vary in frames of the other, where they
// would be cut.
func TestVaryFamily(t *testing.T) {
	for text, want := range map[string][2]bool{ // in IPv4, in IPv6
		"src_ip=10.0.0.1-10.0.0.9":        {true, false},
		"dst_ip=2001:db8::5":              {false, true},
		"src_ip=random:::1-::9":           {false, true},
		"dst_ip=10.0.0.1,::5":             {false, false},
		"src_mac=2:0:0:0:0:1,2:0:0:0:0:9": {true, true},
	} {
		v, err := gen.ParseVary(text, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, kind := range []gen.Kind{gen.KindUDP, gen.KindRoCE, gen.KindUDP, gen.KindRoCE} {
			_, err := gen.NewFlow(gen.Config{
				Kind: kind, Path: path(i >= 2, false), Sizes: gen.List(150), MaxFrame: maxFrame,
				Vary: []gen.Vary{v},
			})
			if (err == nil) != want[i/2] || err != nil && !errors.Is(err, gen.ErrConfig) {
				t.Errorf("%s, frame %d: %v", text, i, err)
			}
		}
	}
}
