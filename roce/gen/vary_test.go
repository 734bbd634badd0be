package gen_test

import (
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
