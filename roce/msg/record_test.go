package msg_test

import (
	"errors"
	"testing"

	"xroce/roce/msg"
)

// recordGoldens are the headers of records; mask has the bits that the type has, of which any
// value is one but for the topmost of an offset.
var recordGoldens = []struct {
	name, hex, mask, text string
	header                msg.RecordHeader
}{
	{
		"EAGER", "01 01 0000 00000400 00000000000000ab",
		"00 03 0000 ffffffff ffffffffffffffff", "EAGER flags=SYNC len=1024 tag=0xab",
		msg.RecordHeader{Type: msg.RecordEager, Flags: msg.RecordSync, Len: 1024, Tag: 0xab},
	},
	{
		"FRAGMENT", "02 00 0102 00000400 0000000000010000",
		"00 00 ffff ffffffff 7fffffffffffffff", "FRAGMENT id=258 len=1024 offset=65536",
		msg.RecordHeader{Type: msg.RecordFragment, Number: 258, Len: 1024, Tag: 1 << 16},
	},
	{
		"ACTIVE", "03 00 0003 00000007 8000000000000000",
		"00 03 ffff ffffffff ffffffffffffffff", "ACTIVE handler=3 len=7 tag=0x8000000000000000",
		msg.RecordHeader{Type: msg.RecordActive, Number: 3, Len: 7, Tag: 1 << 63},
	},
}

func TestRecordHeaderGolden(t *testing.T) {
	for _, c := range recordGoldens {
		b := []byte("0123456789abcdef")
		c.header.Put(b)
		if want := unhex(t, c.hex); string(b) != string(want) {
			t.Errorf("%s is %x, want %x", c.name, b, want)
		}
		if h, err := msg.ParseRecordHeader(b); err != nil || h != c.header {
			t.Errorf("%s becomes %v, %v", c.name, &h, err)
		}
		if got := c.header.String(); got != c.text || c.header.Type.String() != c.name {
			t.Errorf("%s prints as %q, want %q", c.name, got, c.text)
		}
		for n := range b {
			if _, err := msg.ParseRecordHeader(b[:n:n]); !errors.Is(err, msg.ErrShort) {
				t.Errorf("%s of %d bytes: %v", c.name, n, err)
			}
		}
	}
	unknown := msg.RecordHeader{Type: 9}
	if got := unknown.String(); got != "record type 9" {
		t.Errorf("type 9 prints as %q", got)
	}
}

// TestRecordHeaderBits changes each bit of the header of each type but those of the type.
func TestRecordHeaderBits(t *testing.T) {
	for _, c := range recordGoldens {
		mask := unhex(t, c.mask)
		for i := 8; i < msg.RecordHeaderLen*8; i++ {
			b, bit := unhex(t, c.hex), byte(0x80)>>(i%8)
			b[i/8] ^= bit
			h, err := msg.ParseRecordHeader(b)
			switch {
			case mask[i/8]&bit != 0:
				if err != nil || h == c.header {
					t.Errorf("%s, bit %d: %v, %v", c.name, i, &h, err)
				}
			case i < 16:
				if !errors.Is(err, msg.ErrFlags) {
					t.Errorf("%s, bit %d: %v", c.name, i, err)
				}
			case i < 32:
				if !errors.Is(err, msg.ErrReserved) {
					t.Errorf("%s, bit %d: %v", c.name, i, err)
				}
			default:
				if !errors.Is(err, msg.ErrRange) {
					t.Errorf("%s, bit %d: %v", c.name, i, err)
				}
			}
		}
	}
}

// TestRecordTypes: there are no others.
func TestRecordTypes(t *testing.T) {
	for n := range 256 {
		b := make([]byte, msg.RecordHeaderLen)
		b[0] = byte(n)
		_, err := msg.ParseRecordHeader(b)
		if known := n >= 1 && n <= 3; known != (err == nil) ||
			!known && !errors.Is(err, msg.ErrType) {
			t.Errorf("type %d: %v", n, err)
		}
	}
}
