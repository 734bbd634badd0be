package gen_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"xroce/roce/gen"
)

// TestPFC: a frame of flow control is what IEEE 802.3 has it to be, goes to the neighbour, and
// has no signature and no end.
func TestPFC(t *testing.T) {
	f := flow(t, gen.Config{
		Kind: gen.KindPFC, Path: path(false, true),
		PFC: gen.PFC{Priorities: 1<<3 | 1<<5, Quanta: 9},
	})
	frame := make([]byte, maxFrame)
	n := f.Next(frame, 1)
	want := [60]byte{
		0: 0x01, 1: 0x80, 2: 0xc2, 5: 0x01, 6: 2, 11: 1, 12: 0x88, 13: 0x08, 14: 0x01, 15: 0x01,
		17: 0b101000, 18 + 2*3 + 1: 9, 18 + 2*5 + 1: 9,
	}
	if n != len(want) || [60]byte(frame) != want {
		t.Errorf("%x, want %x", frame[:n], want)
	}
	var r gen.Reader
	if a := r.Read(frame[:n], nil); a.Found != gen.Foreign || !f.Silent() || f.End(frame, 1) != 0 {
		t.Errorf("%+v", a)
	}
	if f.Sent() != 1 || binary.BigEndian.Uint16(frame[12:]) != 0x8808 {
		t.Errorf("%d sent", f.Sent())
	}
	_, err := gen.NewFlow(gen.Config{Kind: gen.KindPFC, Path: path(false, false), MaxFrame: 100})
	if !errors.Is(err, gen.ErrConfig) {
		t.Errorf("of no priority: %v", err)
	}
}
