package wire

import "testing"

// TestFrameSourceAgreesWithDecode for every framing, with and without a tag, and
// refuses every frame that ends before its source does.
func TestFrameSourceAgreesWithDecode(t *testing.T) {
	v4 := [2]GID{GIDFromIPv4([4]byte{192, 0, 2, 1}), GIDFromIPv4([4]byte{192, 0, 2, 2})}
	v6 := [2]GID{{0: 0xfd, 15: 1}, {0: 0xfd, 15: 2}}
	for _, c := range []struct {
		framing Framing
		gids    [2]GID
		ends    int // where the source address ends, without a tag
	}{
		{FramingV2IPv4, v4, ethLen + ipv4Len},
		{FramingV2IPv6, v6, ethLen + GRHLen},
		{FramingV1, v4, ethLen + GRHLen},
	} {
		for _, tag := range []struct {
			tagged bool
			tci    uint16
			id     uint16
		}{{false, 0, 0}, {true, VLANTag(5, 3), 5}, {true, VLANTag(0, 7), 0}} {
			path := Path{
				Framing: c.framing, Src: c.gids[0], Dst: c.gids[1],
				Tagged: tag.tagged, VLAN: tag.tci,
			}
			var tmpl Template
			if err := tmpl.Init(path); err != nil {
				t.Fatal(err)
			}
			frame := make([]byte, tmpl.FrameLen(BTHLen))
			BTH{Opcode: RCSendOnly}.Put(frame[tmpl.Len():])
			tmpl.Seal(frame, BTHLen, 1)
			var p Packet
			if r := p.Decode(frame, nil); r != OK {
				t.Fatalf("%s: %s", c.framing, r)
			}
			src, vlan, ok := FrameSource(frame)
			if !ok || src != p.Src || src != path.Src || vlan != p.VLANID() || vlan != tag.id ||
				vlan != path.VLANID() {
				t.Errorf("%s, tag %04x: source %s, VLAN %d of packet %d of path %d, %t",
					c.framing, tag.tci, src, vlan, p.VLANID(), path.VLANID(), ok)
			}
			ends := c.ends
			if tag.tagged {
				ends += vlanLen
			}
			for n := range ends {
				if _, _, ok := FrameSource(frame[:n]); ok {
					t.Errorf("%s: %d bytes of %d are enough", c.framing, n, ends)
				}
			}
		}
	}
	arp := make([]byte, 60)
	arp[12], arp[13] = 8, 6
	if _, _, ok := FrameSource(arp); ok {
		t.Error("ARP has a source GID")
	}
}

// TestTag puts tags and reads them again, and takes nothing else for one.
func TestTag(t *testing.T) {
	for _, tag := range []Tag{{TPIDCustomer, VLANTag(5, 3)}, {TPIDService, 0xffff}} {
		var b [TagLen]byte
		tag.Put(b[:])
		if got, ok := ParseTag(b[:]); !ok || got != tag || got.VLANID() != tag.TCI&0xfff {
			t.Errorf("%+v comes back as %+v, %t", tag, got, ok)
		}
		for n := range TagLen {
			if got, ok := ParseTag(b[:n]); ok || got != (Tag{}) {
				t.Errorf("%d bytes are %+v", n, got)
			}
		}
	}
	if got, ok := ParseTag([]byte{0x91, 0, 0, 1}); ok || got != (Tag{}) {
		t.Errorf("another EtherType is %+v", got)
	}
}
