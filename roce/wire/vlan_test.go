package wire

import (
	"bytes"
	"encoding/hex"
	"slices"
	"testing"
)

// tagged are VLANs of frames with their tags, as bytes of the frame.
var tagged = []struct {
	tags  Tags
	vlan  VLAN
	name  string
	bytes string
}{
	{Tags{}, 0, "0", ""},
	{Tags{{TPIDCustomer, VLANTag(5, 3)}}, 5, "5", "81006005"},
	{Tags{{TPIDService, VLANTag(100, 3)}}, 100 | vlanService, "s100", "88a86064"},
	{
		Tags{{TPIDCustomer, VLANTag(100, 3)}, {TPIDCustomer, VLANTag(5, 3)}},
		100<<vlanHalf | 5, "100.5", "8100606481006005",
	},
	{
		Tags{{TPIDService, VLANTag(4094, 7)}, {TPIDCustomer, VLANTag(1, 7)}},
		(4094|vlanService)<<vlanHalf | 1, "s4094.1", "88a8effe8100e001",
	},
}

// TestVLANs turns VLANs into tags and bytes and back, with their priority.
func TestVLANs(t *testing.T) {
	for _, c := range tagged {
		pcp := uint8(c.tags[0].TCI >> 13)
		if got := c.vlan.Tags(pcp); got != c.tags {
			t.Errorf("%s: tags %x, not %x", c.name, got, c.tags)
		}
		if got := c.tags.VLAN(); got != c.vlan || got.String() != c.name {
			t.Errorf("%x: VLAN %s, not %s", c.tags, got, c.name)
		}
		frame := slices.Concat(make([]byte, 12), make([]byte, c.tags.Len()), []byte{0x88, 0xb5})
		if n := c.tags.Put(frame[12:]); n != len(c.bytes)/2 || n != c.tags.Len() ||
			hex.EncodeToString(frame[12:12+n]) != c.bytes {
			t.Errorf("%s: %d bytes, % x", c.name, n, frame)
		}
		tags, etherType, net, ok := ParseTags(frame)
		if !ok || tags != c.tags || etherType != 0x88b5 || net != len(frame) {
			t.Errorf("%s: read as %x, EtherType %04x, header %d, %t", c.name, tags, etherType,
				net, ok)
		}
		for n := range frame {
			if tags, _, _, ok := ParseTags(frame[:n]); ok || tags != (Tags{}) {
				t.Errorf("%s: %d bytes are enough", c.name, n)
			}
		}
		if got := c.tags.WithPriority(1); got != c.vlan.Tags(1) {
			t.Errorf("%s: with another priority %x", c.name, got)
		}
	}
}

// TestPriorityTags: a tag without an ID is of no VLAN, wherever it is.
func TestPriorityTags(t *testing.T) {
	priority, five := Tag{TPIDCustomer, 7 << 13}, Tag{TPIDCustomer, 5}
	for _, c := range []struct {
		tags Tags
		want VLAN
	}{
		{Tags{priority}, 0},
		{Tags{priority, five}, 5},
		{Tags{{TPIDService, 7 << 13}, five}, 5},
		{Tags{five, priority}, 5},
		{Tags{priority, priority}, 0},
	} {
		if got := c.tags.VLAN(); got != c.want {
			t.Errorf("%x: VLAN %s, not %s", c.tags, got, c.want)
		}
	}
}

// TestBehind puts VLANs on VLANs, not more than two.
func TestBehind(t *testing.T) {
	service := NewVLAN(TPIDService, 100)
	both := Tags{{TPIDService, 100}, {TPIDCustomer, 5}}.VLAN()
	for _, c := range []struct {
		inner, outer, want VLAN
		ok                 bool
	}{
		{5, 0, 5, true},
		{service, 0, service, true},
		{5, service, both, true},
		{5, both, 0, false},
		{both, 5, 0, false},
		{0, 5, 0, false},
	} {
		if got, ok := c.inner.Behind(c.outer); got != c.want || ok != c.ok {
			t.Errorf("%s behind %s: %s, %t", c.inner, c.outer, got, ok)
		}
	}
}

// TestBadTags: no path has tags that frames do not have.
func TestBadTags(t *testing.T) {
	for _, tags := range []Tags{
		{{0x9100, 5}}, {{TPIDCustomer, 5}, {0x9100, 5}}, {{}, {TPIDCustomer, 5}}, {{0, 5}},
	} {
		path := testPath(FramingV2IPv6)
		path.Tags = tags
		var tmpl Template
		if err := tmpl.Init(path); err == nil {
			t.Errorf("tags %x are taken", tags)
		}
	}
}

// tagGIDs are addresses of a framing.
func tagGIDs(f Framing) [2]GID {
	if f == FramingV2IPv6 {
		return [2]GID{{0: 0xfd, 15: 1}, {0: 0xfd, 15: 2}}
	}
	return [2]GID{GIDFromIPv4([4]byte{192, 0, 2, 1}), GIDFromIPv4([4]byte{192, 0, 2, 2})}
}

// TestTaggedFrames builds and reads packets of every framing behind all tags: beside the tags they
// are the frame without any, Decode and FrameSource agree, and no frame that ends early is taken.
func TestTaggedFrames(t *testing.T) {
	for f, ends := range map[Framing]int{ // where the source address ends, without a tag
		FramingV2IPv4: ethLen + ipv4Len, FramingV2IPv6: ethLen + GRHLen, FramingV1: ethLen + GRHLen,
	} {
		gids := tagGIDs(f)
		var plain []byte
		for _, c := range tagged {
			path := Path{Framing: f, Src: gids[0], Dst: gids[1], Tags: c.tags}
			var tmpl Template
			if err := tmpl.Init(path); err != nil {
				t.Fatal(err)
			}
			frame := make([]byte, tmpl.FrameLen(BTHLen))
			BTH{Opcode: RCSendOnly}.Put(frame[tmpl.Len():])
			tmpl.Seal(frame, BTHLen, 1)
			at := 12 + c.tags.Len()
			if plain == nil {
				plain = frame
			}
			if hex.EncodeToString(frame[12:at]) != c.bytes ||
				!bytes.Equal(plain, slices.Delete(bytes.Clone(frame), 12, at)) {
				t.Errorf("%s, VLAN %s: % x, without tags % x", f, c.name, frame, plain)
			}
			var p Packet
			if r := p.Decode(frame, nil); r != OK || !p.VerifyICRC() || p.Tags != c.tags {
				t.Fatalf("%s, VLAN %s: %s with tags %x", f, c.name, r, p.Tags)
			}
			if src, vlan, ok := FrameSource(frame); !ok || src != p.Src || vlan != c.vlan {
				t.Errorf("%s, VLAN %s: source %s on %s, %t", f, c.name, src, vlan, ok)
			}
			for n := range frame {
				_, _, ok := FrameSource(frame[:n])
				if r := p.Decode(frame[:n], nil); r != Truncated || ok != (n >= ends+c.tags.Len()) {
					t.Errorf("%s, VLAN %s: %d bytes are %s, with a source: %t", f, c.name, n, r, ok)
				}
			}
		}
	}
}

// TestThreeTags are no RoCE packet, nor has ARP a source.
func TestThreeTags(t *testing.T) {
	path := testPath(FramingV2IPv6)
	path.Tags = tagged[4].tags
	var tmpl Template
	if err := tmpl.Init(path); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, tmpl.FrameLen(BTHLen))
	BTH{Opcode: RCSendOnly}.Put(frame[tmpl.Len():])
	tmpl.Seal(frame, BTHLen, 1)
	frame = slices.Insert(frame, 12, 0x81, 0, 0, 9)
	arp := make([]byte, 60)
	arp[12], arp[13] = 8, 6
	for _, b := range [][]byte{frame, arp} {
		var p Packet
		if r := p.Decode(b, nil); r != NotRoCE {
			t.Errorf("% x is %s", b, r)
		}
		if _, _, ok := FrameSource(b); ok {
			t.Errorf("% x has a source", b)
		}
	}
}

// TestTag puts tags and takes nothing else for one.
func TestTag(t *testing.T) {
	for _, tag := range []Tag{{TPIDCustomer, VLANTag(5, 3)}, {TPIDService, 0xffff}} {
		var b [TagLen]byte
		tag.Put(b[:])
		got, _, _, ok := ParseTags(slices.Concat(make([]byte, 12), b[:], []byte{8, 0}))
		if !ok || got != (Tags{tag}) || got[0].VLANID() != tag.TCI&0xfff {
			t.Errorf("%+v comes back as %+v, %t", tag, got, ok)
		}
	}
	tags, etherType, net, ok := ParseTags(slices.Concat(make([]byte, 12), []byte{0x91, 0, 0, 1}))
	if !ok || tags != (Tags{}) || etherType != 0x9100 || net != ethLen {
		t.Errorf("another EtherType is %+v", tags)
	}
}
