package msg_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/msg"
)

func TestControlGolden(t *testing.T) {
	types := 0
	for i, c := range controlGoldens {
		if i == 0 || controlGoldens[i-1].name != c.name {
			types++
		}
		want := unhex(t, c.hex)
		b := bytes.Repeat([]byte{0xa5}, msg.MaxControlLen)
		if got := c.control.Put(b); !bytes.Equal(got, want) || b[msg.ControlLen] != 0xa5 {
			t.Errorf("%s is\n%x, want\n%x", c.name, got, want)
		}
		got, err := msg.ParseControl(want)
		if err != nil || got != c.control {
			t.Errorf("%s becomes %v, %v", c.name, &got, err)
		}
		if got := c.control.String(); got != c.text {
			t.Errorf("%s prints as\n%s, want\n%s", c.name, got, c.text)
		}
		if c.control.Type.String() != c.name || int(c.control.Type) != types {
			t.Errorf("%s is type %d, %s", c.name, c.control.Type, c.control.Type)
		}
		for n := range want {
			if _, err := msg.ParseControl(want[:n:n]); !errors.Is(err, msg.ErrShort) {
				t.Errorf("%s of %d bytes: %v", c.name, n, err)
			}
		}
		for n := msg.ControlLen + 1; n < 200; n++ {
			longer := append(unhex(t, c.hex), make([]byte, n-msg.ControlLen)...)
			_, err := msg.ParseControl(longer)
			if n < msg.ControlLen+2*msg.RailLen && (n-msg.ControlLen)%msg.RailLen == 0 &&
				c.control.Type.Rails(c.control.Flags) {
				must(t, err)
			} else if n > msg.MaxControlLen || (n-msg.ControlLen)%msg.RailLen != 0 ||
				!c.control.Type.Rails(c.control.Flags) {
				if !errors.Is(err, msg.ErrLength) {
					t.Errorf("%s of %d bytes: %v", c.name, n, err)
				}
			}
		}
	}
	if types != 18 {
		t.Errorf("%d types", types)
	}
}

// TestControlBits changes each bit of a message of each type.
func TestControlBits(t *testing.T) {
	for _, c := range controlGoldens {
		mask := append(make([]byte, 4), unhex(t, c.mask)...)
		if len(mask) != msg.ControlLen {
			t.Fatalf("mask of %s has %d bytes", c.name, len(mask))
		}
		for i := range msg.ControlLen * 8 {
			b, bit := unhex(t, c.hex), byte(0x80)>>(i%8)
			b[i/8] ^= bit
			got, err := msg.ParseControl(b)
			is := func(want error) {
				t.Helper()
				if !errors.Is(err, want) || got != (msg.Control{}) {
					t.Errorf("%s, bit %d of byte %d: %v, %v", c.name, i%8, i/8, &got, err)
				}
			}
			switch {
			case i/8 < 2:
				is(msg.ErrMagic)
			case i/8 == 2:
				is(msg.ErrVersion)
			case i/8 == 3: // see TestControlTypes
			case mask[i/8]&bit == 0 && i/8 == 4:
				is(msg.ErrFlags)
			case mask[i/8]&bit == 0:
				is(msg.ErrReserved)
			case i/8 == 4: // see TestFieldsOfFlags
			case err != nil:
				is(msg.ErrRange)
			case got == c.control:
				t.Errorf("%s, bit %d of byte %d means nothing", c.name, i%8, i/8)
			}
		}
	}
}

// TestControlTypes: there are no others.
func TestControlTypes(t *testing.T) {
	for n := range 256 {
		b := unhex(t, "584d 01 00 00 00 0000 00000000 00000000"+none8+none8+none8+none8)
		b[3] = byte(n)
		_, err := msg.ParseControl(b)
		if known := n >= 1 && n <= 18; known == errors.Is(err, msg.ErrType) {
			t.Errorf("type %d: %v", n, err)
		}
	}
	if got := msg.Type(99); got.String() != "control type 99" || got.Fields() != nil ||
		got.Statuses() != nil || got.Flags() != 0 || got.Rails(0xff) {
		t.Errorf("there is a %s", got)
	}
	c := msg.Control{Type: 99, Flags: 0x81}
	if got := c.String(); got != "control type 99 flags=GET+0x80 seq=0 released=0" {
		t.Errorf("type 99 prints as %q", got)
	}
}

// TestFieldsOfFlags: an RTS has a key only when it may be read, a handler only when it is for one.
func TestFieldsOfFlags(t *testing.T) {
	for _, c := range []struct {
		control msg.Control
		err     error
	}{
		{msg.Control{Type: msg.TypeRTS}, nil},
		{msg.Control{Type: msg.TypeRTS, RKey: 1}, msg.ErrReserved},
		{msg.Control{Type: msg.TypeRTS, Addr: 1}, msg.ErrReserved},
		{msg.Control{Type: msg.TypeRTS, Number: 1}, msg.ErrReserved},
		{msg.Control{Type: msg.TypeRTS, Flags: msg.FlagGet, RKey: 1, Addr: 1}, nil},
		{msg.Control{Type: msg.TypeRTS, Flags: msg.FlagGet, Number: 1}, msg.ErrReserved},
		{msg.Control{Type: msg.TypeRTS, Flags: msg.FlagActive, Number: 1}, nil},
		{msg.Control{Type: msg.TypeRTS, Flags: msg.FlagActive, RKey: 1}, msg.ErrReserved},
		{
			msg.Control{
				Type: msg.TypeRTS, Flags: msg.FlagActive | msg.FlagGet, Number: 1, RKey: 1,
				Addr: 1,
			}, nil,
		},
		{msg.Control{Type: msg.TypeRTS, RailCount: 1}, msg.ErrLength},
		{msg.Control{Type: msg.TypeRTS, Flags: msg.FlagGet, RailCount: 1}, nil},
		{msg.Control{Type: msg.TypeRTR, Len: 1, RailCount: 1}, nil},
		{msg.Control{Type: msg.TypeCTS, Len: 1, RailCount: 1}, msg.ErrLength},
		{msg.Control{Type: msg.TypeFIN, RailCount: 1}, msg.ErrLength},
	} {
		b := c.control.Put(make([]byte, msg.MaxControlLen))
		if _, err := msg.ParseControl(b); !errors.Is(err, c.err) {
			t.Errorf("%v: %v, want %v", &c.control, err, c.err)
		}
	}
}

// TestControlRange: the least and the largest value of each field that has some.
func TestControlRange(t *testing.T) {
	const slot = 1<<32 + 16 // the longest slot
	for _, c := range []struct {
		name     string
		at, size int
		min, max uint64
	}{
		{"ADVERT", 5, 1, 0, 15},
		{"ADVERT", 6, 2, 1, math.MaxUint16},
		{"ADVERT", 24, 8, 48, slot},
		{"ADVERT_ACK", 5, 1, 0, 15},
		{"CREDIT", 32, 8, 0, math.MaxUint32},
		{"RTS", 24, 8, 0, math.MaxInt64},
		{"RTS", 32, 8, 0, math.MaxUint64},
		{"RTR", 24, 8, 1, math.MaxInt64},
		{"RTR", 32, 8, 0, math.MaxInt64},
		{"ATS", 24, 8, 0, math.MaxInt64},
		{"ATP", 24, 8, 0, math.MaxInt64},
		{"ATP", 32, 8, 0, math.MaxInt64},
		{"CTS", 24, 8, 1, math.MaxInt64},
		{"PROVISION_REQ", 5, 1, 1, 15},
		{"PROVISION_REQ", 6, 2, 1, math.MaxUint16},
		{"PROVISION_REQ", 24, 8, 48, slot},
		{"PROVISION_ACK", 5, 1, 1, 15},
		{"PROVISION_ACK", 6, 2, 1, math.MaxUint16},
		{"PROVISION_ACK", 24, 8, 48, slot},
		{"PROVISION_NAK", 24, 8, 0, slot},
		{"RELEASE", 5, 1, 1, 15},
		{"RELEASE_ACK", 5, 1, 1, 15},
		{"RESUME", 24, 8, 0, math.MaxUint32},
		{"RESUME", 32, 8, 0, math.MaxUint32},
	} {
		for _, v := range []uint64{0, c.min - 1, c.min, c.min + 1, c.max - 1, c.max, c.max + 1} {
			if v>>(8*c.size-1)>>1 != 0 {
				continue // no room for it
			}
			b := unhex(t, controlGoldens[goldenOf(c.name)].hex)
			var number [8]byte
			binary.BigEndian.PutUint64(number[:], v)
			copy(b[c.at:], number[8-c.size:])
			_, err := msg.ParseControl(b)
			if in := v >= c.min && v <= c.max; in && err != nil ||
				!in && !errors.Is(err, msg.ErrRange) {
				t.Errorf("%s with %d at byte %d: %v", c.name, v, c.at, err)
			}
		}
	}
}

func goldenOf(name string) int {
	for i := range controlGoldens {
		if controlGoldens[i].name == name {
			return i
		}
	}
	return -1
}

// TestControlStatuses: which statuses a message may have.
func TestControlStatuses(t *testing.T) {
	names := map[string]string{
		"ATS": "ok, truncated, cancelled, no memory, quota, too large, protocol error, " +
			"timeout, closed",
		"PROVISION_NAK": "no memory, quota, too large, closed, busy",
		"BYE":           "ok, no memory, quota, protocol error, timeout, closed, busy",
	}
	for name, want := range names {
		golden := controlGoldens[goldenOf(name)]
		var got []string
		for v := range 256 {
			b := unhex(t, golden.hex)
			b[5] = byte(v)
			c, err := msg.ParseControl(b)
			switch {
			case err == nil:
				got = append(got, c.Status.String())
			case !errors.Is(err, msg.ErrRange):
				t.Errorf("%s with status %d: %v", name, v, err)
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s may have %s, want %s", name, got, want)
		}
	}
	if got := msg.Status(99).String(); got != "status 99" {
		t.Errorf("status 99 prints as %q", got)
	}
}

// drawControl draws a message that may be sent.
func drawControl(t *rapid.T) msg.Control {
	c := msg.Control{
		Type:     msg.Type(rapid.IntRange(1, 18).Draw(t, "type")),
		Sequence: rapid.Uint32().Draw(t, "sequence"),
		Released: rapid.Uint32().Draw(t, "released"),
	}
	c.Flags = msg.Flags(rapid.Byte().Draw(t, "flags")) & c.Type.Flags()
	draw := func(f msg.Field, most uint64) uint64 {
		if f.Max != 0 {
			most = f.Max
		}
		return rapid.Uint64Range(f.Min, most).Draw(t, f.Name)
	}
	for _, f := range c.Type.Fields() {
		if !f.In(c.Flags) {
			continue
		}
		switch f.Place {
		case msg.PlaceClass:
			c.Class = uint8(draw(f, msg.MaxClass))
		case msg.PlaceStatus:
			c.Status = rapid.SampledFrom(c.Type.Statuses()).Draw(t, "status")
		case msg.PlaceNumber:
			c.Number = uint16(draw(f, math.MaxUint16))
		case msg.PlaceID:
			c.ID = uint32(draw(f, math.MaxUint32))
		case msg.PlaceRKey:
			c.RKey = uint32(draw(f, math.MaxUint32))
		case msg.PlaceAddr:
			c.Addr = draw(f, math.MaxUint64)
		case msg.PlaceLen:
			c.Len = draw(f, math.MaxInt64)
		case msg.PlaceTag:
			c.Tag = draw(f, math.MaxUint64)
		}
	}
	if c.Type.Rails(c.Flags) {
		c.RailCount = uint8(rapid.IntRange(0, msg.MaxFurtherRails).Draw(t, "rails"))
		for i := range c.Rails[:c.RailCount] {
			c.Rails[i] = msg.RailKey{
				Rail: uint8(i*40) + rapid.Uint8Max(39).Draw(t, "rail"),
				RKey: rapid.Uint32().Draw(t, "rkey"), Addr: rapid.Uint64().Draw(t, "addr"),
			}
		}
	}
	return c
}

func TestControlRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawControl(t)
		b := c.Put(bytes.Repeat([]byte{0xa5}, msg.MaxControlLen))
		if got, err := msg.ParseControl(b); err != nil || got != c {
			t.Fatalf("%v becomes %v, %v", &c, &got, err)
		}
	})
}

// FuzzControl: a message is refused, or is what was read of it, to the last bit.
func FuzzControl(f *testing.F) {
	for _, c := range controlGoldens {
		f.Add(unhex(f, c.hex))
	}
	f.Add(unhex(f, goldenRails))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := msg.ParseControl(b)
		if err != nil {
			if c != (msg.Control{}) {
				t.Fatalf("%v with %v", &c, err)
			}
			return
		}
		if got := c.Put(make([]byte, msg.MaxControlLen)); !bytes.Equal(got, b) {
			t.Fatalf("%x becomes %x", b, got)
		}
		if !strings.HasPrefix(c.String(), c.Type.String()) {
			t.Fatalf("%x prints as %s", b, &c)
		}
	})
}
