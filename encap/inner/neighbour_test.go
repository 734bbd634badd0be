package inner

import (
	"net"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/encap"
)

var (
	asker    = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	answerer = net.HardwareAddr{2, 0, 0, 0, 0, 2}
)

// put makes a frame of layers.
func put(t *testing.T, list ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buffer := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buffer,
		gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, list...)
	if err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// whoHas makes a question by ARP.
func whoHas(t *testing.T, from, target string) []byte {
	t.Helper()
	return put(t,
		&layers.Ethernet{
			SrcMAC: asker, DstMAC: layers.EthernetBroadcast, EthernetType: layers.EthernetTypeARP,
		},
		&layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4,
			HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
			SourceHwAddress: asker, DstHwAddress: make([]byte, 6),
			SourceProtAddress: netip.MustParseAddr(from).AsSlice(),
			DstProtAddress:    netip.MustParseAddr(target).AsSlice(),
		})
}

// solicit makes a neighbour solicitation.
func solicit(t *testing.T, from, target string, hops uint8) []byte {
	t.Helper()
	ip := &layers.IPv6{
		Version: 6, HopLimit: hops, NextHeader: layers.IPProtocolICMPv6,
		SrcIP: net.ParseIP(from), DstIP: net.ParseIP("ff02::1:ff00:2"),
	}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(135, 0)}
	_ = icmp.SetNetworkLayerForChecksum(ip) // never fails for IPv6
	return put(t,
		&layers.Ethernet{
			SrcMAC: asker, DstMAC: net.HardwareAddr{0x33, 0x33, 0xff, 0, 0, 2},
			EthernetType: layers.EthernetTypeIPv6,
		}, ip, icmp,
		&layers.ICMPv6NeighborSolicitation{TargetAddress: net.ParseIP(target)})
}

// TestAnswer: a question is answered so that who reads the answer learns what was asked.
func TestAnswer(t *testing.T) {
	for name, b := range map[string][]byte{
		"ARP": whoHas(t, "10.0.0.1", "10.0.0.2"),
		"ND":  solicit(t, "fe80::1", "fd00::2", 255),
	} {
		h := Parse(encap.Ethernet, b)
		target, ok := h.Asks(b)
		if !ok || target != netip.MustParseAddr("10.0.0.2") &&
			target != netip.MustParseAddr("fd00::2") {
			t.Fatalf("%s: asks for %s (%t)", name, target, ok)
		}
		dst := make([]byte, AnswerLen)
		n := h.Answer(dst, b, [6]byte(answerer), name == "ND")
		got := Parse(encap.Ethernet, dst[:n])
		a, mac, router, ok := got.Says(dst[:n])
		if !ok || a != target || mac != [6]byte(answerer) || router != (name == "ND") {
			t.Errorf("%s: says %s is %x, router %t (%t)", name, a, mac, router, ok)
		}
		p := gopacket.NewPacket(dst[:n], layers.LayerTypeEthernet, gopacket.Default)
		if p.ErrorLayer() != nil {
			t.Errorf("%s: %v", name, p.ErrorLayer().Error())
		}
		eth := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		if eth.DstMAC.String() != asker.String() || eth.SrcMAC.String() != answerer.String() {
			t.Errorf("%s: from %s to %s", name, eth.SrcMAC, eth.DstMAC)
		}
		if arp, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP); ok &&
			(arp.Operation != layers.ARPReply || !net.IP(arp.DstProtAddress).Equal(
				net.IP{10, 0, 0, 1})) {
			t.Errorf("%s: %+v", name, arp)
		}
	}
}

// TestAsksNothing: what others have to hear asks for nothing: probes and claims of an address,
// what came from another link, frames to a single host, and those that are broken.
func TestAsksNothing(t *testing.T) {
	tagged := whoHas(t, "10.0.0.1", "10.0.0.2")
	tagged = append(append(tagged[:12:12], 0x81, 0, 0, 1), tagged[12:]...)
	unicast := whoHas(t, "10.0.0.1", "10.0.0.2")
	copy(unicast, answerer)
	broken := solicit(t, "fe80::1", "fd00::2", 255)
	broken[60] ^= 1
	for name, b := range map[string][]byte{
		"a probe":          whoHas(t, "0.0.0.0", "10.0.0.2"),
		"a claim":          whoHas(t, "10.0.0.2", "10.0.0.2"),
		"for a group":      whoHas(t, "10.0.0.1", "224.0.0.1"),
		"in a VLAN":        tagged,
		"to one host":      unicast,
		"a probe, IPv6":    solicit(t, "::", "fd00::2", 255),
		"from far away":    solicit(t, "fe80::1", "fd00::2", 64),
		"a group, IPv6":    solicit(t, "fe80::1", "ff02::1", 255),
		"a wrong checksum": broken,
	} {
		h := Parse(encap.Ethernet, b)
		if target, ok := h.Asks(b); ok {
			t.Errorf("%s: asks for %s", name, target)
		}
	}
	for n, b := 0, whoHas(t, "10.0.0.1", "10.0.0.2"); n < len(b); n++ {
		h := Parse(encap.Ethernet, b[:n])
		if _, ok := h.Asks(b[:n]); ok && n < EthernetLen+arpLen {
			t.Errorf("%d bytes ask", n)
		}
	}
	forged := whoHas(t, "10.0.0.1", "10.0.0.2")
	forged[22] ^= 1 // who sends is not who says it
	h := Parse(encap.Ethernet, forged)
	if _, _, _, ok := h.Says(forged); ok {
		t.Error("what somebody says of another one is taken")
	}
}

// FuzzNeighbour reads any frame without a panic, and answers what asks within its bounds.
func FuzzNeighbour(f *testing.F) {
	f.Add([]byte{0: 0xff, 6: 2, 12: 8, 13: 6, 41: 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		h := Parse(encap.Ethernet, b)
		_, _, _, _ = h.Says(b)
		if _, ok := h.Asks(b); ok {
			dst := make([]byte, AnswerLen)
			n := h.Answer(dst, b, [6]byte(answerer), false)
			if got := Parse(encap.Ethernet, dst[:n]); got.EtherType != h.EtherType {
				t.Fatalf("%x", dst[:n])
			}
		}
	})
}
