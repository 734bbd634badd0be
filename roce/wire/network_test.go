package wire

import "testing"

// TestDecodeNetwork: from the network header on a packet is the same as in its frame, without what
// Ethernet says.
func TestDecodeNetwork(t *testing.T) {
	types := map[Framing]uint16{
		FramingV2IPv4: etherTypeIPv4, FramingV2IPv6: etherTypeIPv6, FramingV1: EtherTypeV1,
	}
	for _, f := range ethFramings {
		frame := build(t, f, RCSendOnly, 5)
		var want, got Packet
		if r := want.Decode(frame, nil); r != OK {
			t.Fatal(r)
		}
		if r := got.DecodeNetwork(types[f], frame[ethLen:], nil); r != OK {
			t.Fatalf("%s: %s", f, r)
		}
		if got.BTH != want.BTH || got.Src != want.Src || got.Framing != want.Framing ||
			!got.VerifyICRC() || got.SrcMAC != [6]byte{} || got.NetworkLen() != want.NetworkLen() {
			t.Errorf("%s: %+v, want %+v", f, got, want)
		}
		if r := got.DecodeNetwork(0x1234, frame[ethLen:], nil); r != NotRoCE || got.Spec != nil {
			t.Errorf("%s: of an EtherType of others %s", f, r)
		}
	}
}
