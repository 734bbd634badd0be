package wire

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPSN(t *testing.T) {
	tests := []struct {
		a, b PSN
		diff int32
	}{
		{0, 0, 0},
		{1, 0, 1},
		{0, 1, -1},
		{0, max24, 1},
		{max24, 0, -1},
		{1<<23 - 1, 0, 1<<23 - 1},
		{1 << 23, 0, -1 << 23},
		{0, 1 << 23, -1 << 23},
		{0, 1<<23 + 1, 1<<23 - 1},
	}
	for _, tt := range tests {
		if d := tt.a.Diff(tt.b); d != tt.diff {
			t.Errorf("0x%06x.Diff(0x%06x) = %d, want %d", uint32(tt.a), uint32(tt.b), d, tt.diff)
		}
		if tt.a.Before(tt.b) != (tt.diff < 0) || tt.a.After(tt.b) != (tt.diff > 0) {
			t.Errorf("0x%06x and 0x%06x: before %t, after %t", uint32(tt.a), uint32(tt.b),
				tt.a.Before(tt.b), tt.a.After(tt.b))
		}
	}
}

// TestPSNAlgebra compares with integers modulo 2^24.
func TestPSNAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := PSN(rapid.Uint32Max(max24).Draw(t, "p"))
		n := rapid.Uint32().Draw(t, "n")
		if got, want := int64(p.Add(n)), (int64(p)+int64(n))%(1<<24); got != want {
			t.Fatalf("Add: %d, want %d", got, want)
		}
		if p.Add(n).Sub(n) != p || p.Sub(n).Add(n) != p {
			t.Fatal("Add and Sub are not inverse")
		}
		d := rapid.Int32Range(-1<<23, 1<<23-1).Draw(t, "distance")
		q := p.Add(uint32(d))
		if q.Diff(p) != d {
			t.Fatalf("Diff: %d, want %d", q.Diff(p), d)
		}
		size := rapid.Uint32Range(0, 1<<23).Draw(t, "window")
		if got, want := q.InWindow(p, size), d >= 0 && d < int32(size); got != want {
			t.Fatalf("distance %d in window of %d: %t, want %t", d, size, got, want)
		}
		if d != 0 && d != -1<<23 && q.Before(p) == p.Before(q) {
			t.Fatal("Before is not antisymmetric")
		}
	})
}
