package verbs

import (
	"errors"
	"testing"
)

// TestPKeysMatch: full and limited members, and another partition.
func TestPKeysMatch(t *testing.T) {
	for _, c := range []struct {
		a, b uint16
		want bool
	}{
		{0xffff, 0xffff, true},
		{0xffff, 0x7fff, true},
		{0x7fff, 0x7fff, false}, // limited both
		{0x8001, 0x0001, true},
		{0x0001, 0x0001, false},
		{0x8001, 0x8002, false},
		{0x8001, 0xffff, false},
		{0x8000, 0x8000, false}, // no partition
		{0x0000, 0x8000, false},
	} {
		if PKeysMatch(c.a, c.b) != c.want || PKeysMatch(c.b, c.a) != c.want {
			t.Errorf("0x%04x and 0x%04x: want %t", c.a, c.b, c.want)
		}
	}
}

// TestPKeyTableFind prefers the entry of a full member.
func TestPKeyTableFind(t *testing.T) {
	table := PKeyTable{0xffff, 0x0005, 0x8005, 0x0006}
	for _, c := range []struct {
		pkey, index uint16
		ok          bool
	}{
		{0xffff, 0, true},
		{0x7fff, 0, true},
		{0x8005, 2, true},
		{0x0005, 2, true},
		{0x8006, 3, true},
		{0x0006, 0, false},
		{0x8007, 0, false},
		{0, 0, false},
	} {
		if index, ok := table.Find(c.pkey); index != c.index || ok != c.ok {
			t.Errorf("0x%04x is found at %d, %t", c.pkey, index, ok)
		}
	}
}

// TestPKeyTableCheck refuses what is no table.
func TestPKeyTableCheck(t *testing.T) {
	for _, bad := range []PKeyTable{
		nil, {}, {0}, {0xffff, 0x8000}, {0x8001, 0xffff, 0x8001}, make(PKeyTable, MaxPKeys+1),
	} {
		if err := bad.Check(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%x: %v", bad, err)
		}
	}
	for _, good := range []PKeyTable{DefaultPKeys(), {0x8001, 0x0001, 0x7fff}} {
		if err := good.Check(); err != nil {
			t.Errorf("%x: %v", good, err)
		}
	}
}
