package msg_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"xroce/roce/msg"
)

const goldenRails = "584d 01 04 01 00 0000 00000007 01020304 00007f0000002000 0000000000100000" +
	"0000000000000005 00000001 00000002" +
	"01 000000 0000000a 0000000000001000 ff 000000 0000000b 0000000000002000"

func TestRailsGolden(t *testing.T) {
	want := controlGoldens[goldenOf("RTS")].control
	want.RailCount = 2
	want.Rails[0] = msg.RailKey{Rail: 1, RKey: 10, Addr: 0x1000}
	want.Rails[1] = msg.RailKey{Rail: 255, RKey: 11, Addr: 0x2000}
	b := unhex(t, goldenRails)
	if got, err := msg.ParseControl(b); err != nil || got != want {
		t.Errorf("%v, %v", &got, err)
	}
	if got := want.Put(make([]byte, want.Size())); !bytes.Equal(got, b) {
		t.Errorf("rails are\n%x, want\n%x", got, b)
	}
	const text = "released=2 rail=1 addr=0x1000 rkey=0xa rail=255 addr=0x2000 rkey=0xb"
	if got := want.String(); !strings.HasSuffix(got, text) {
		t.Errorf("rails print as %s", got)
	}
}

// TestRailsRefused: what must be zero is, and rails rise.
func TestRailsRefused(t *testing.T) {
	for i := 8; i < 32; i++ {
		b := unhex(t, goldenRails)
		b[msg.ControlLen+i/8] ^= 0x80 >> (i % 8)
		if _, err := msg.ParseControl(b); !errors.Is(err, msg.ErrReserved) {
			t.Errorf("bit %d: %v", i, err)
		}
	}
	for _, first := range []byte{0, 5, 254, 255} {
		b := unhex(t, goldenRails)
		b[msg.ControlLen] = first
		_, err := msg.ParseControl(b)
		if first < 255 {
			must(t, err)
		} else if !errors.Is(err, msg.ErrRails) {
			t.Errorf("the same rail twice: %v", err)
		}
	}
	for n := range msg.RailLen {
		if _, err := msg.ParseRailKey(make([]byte, n)); !errors.Is(err, msg.ErrShort) {
			t.Errorf("rail of %d bytes: %v", n, err)
		}
	}
}
