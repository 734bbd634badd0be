package msg_test

import (
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/msg"
)

func TestImmediateGolden(t *testing.T) {
	for _, c := range []struct {
		i    msg.Immediate
		want uint32
		text string
	}{
		{msg.Immediate{}, 0, "class=0 epoch=0x000 slot=0"},
		{msg.ImmediateOf(0, 1, 5), 0x00010005, "class=0 epoch=0x001 slot=5"},
		{msg.ImmediateOf(2, 0x1abc, 0x8001), 0x2abc8001, "class=2 epoch=0xabc slot=32769"},
		{
			msg.ImmediateOf(msg.MaxClass, 0xffffffff, 0xffff), 0xffffffff,
			"class=15 epoch=0xfff slot=65535",
		},
		// Bits that an epoch has not are not those of the class.
		{msg.Immediate{Class: 1, Epoch: 0xf001}, 0x10010000, "class=1 epoch=0xf001 slot=0"},
	} {
		if got := c.i.Uint32(); got != c.want {
			t.Errorf("%v is 0x%08x, want 0x%08x", c.i, got, c.want)
		}
		if got := c.i.String(); got != c.text {
			t.Errorf("0x%08x prints as %q, want %q", c.want, got, c.text)
		}
	}
}

// TestImmediateOfEpoch: the low 12 bits of an epoch decide.
func TestImmediateOfEpoch(t *testing.T) {
	i := msg.ImmediateOf(0, 0x5fff, 0)
	for epoch, want := range map[uint32]bool{
		0xfff: true, 0x5fff: true, 0xfffff: true, 0x5ffe: false, 0x7ff: false, 0: false,
	} {
		if got := i.OfEpoch(epoch); got != want {
			t.Errorf("%v of epoch 0x%x: %t", i, epoch, got)
		}
	}
}

func TestImmediateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint32().Draw(t, "value")
		i := msg.ParseImmediate(v)
		if got := i.Uint32(); got != v || i.Class > msg.MaxClass {
			t.Fatalf("0x%08x becomes %v, 0x%08x", v, i, got)
		}
		if !i.OfEpoch(uint32(i.Epoch)) || i.OfEpoch(uint32(i.Epoch)+1) {
			t.Fatalf("%v is not of its epoch, or of the next", i)
		}
	})
}
