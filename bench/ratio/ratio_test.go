package ratio

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestOrder(t *testing.T) {
	tests := []struct {
		n, round int
		want     []int
	}{
		{2, 0, []int{0, 1}},
		{2, 1, []int{1, 0}},
		{2, 2, []int{0, 1}},
		{3, 0, []int{0, 1, 2}},
		{3, 1, []int{2, 1, 0}},
		{1, 1, []int{0}},
		{0, 0, []int{}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, Order(tt.n, tt.round)); diff != "" {
			t.Errorf("Order(%d, %d) (-want +got):\n%s", tt.n, tt.round, diff)
		}
	}
}

// Over an even number of rounds every variant has the same mean position, which
// is what makes a steady drift fall on all alike.
func TestOrderIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "variants")
		rounds := 2 * rapid.IntRange(1, 10).Draw(t, "half the rounds")
		sum := make([]int, n)
		for r := range rounds {
			for position, variant := range Order(n, r) {
				sum[variant] += position
			}
		}
		for i, s := range sum {
			if s != sum[0] {
				t.Fatalf("variant %d has positions summing to %d, variant 0 to %d", i, s, sum[0])
			}
		}
	})
}

func TestSpreadOf(t *testing.T) {
	tests := []struct {
		name string
		v    []float64
		want Spread
	}{
		{"none", nil, Spread{}},
		{"one", []float64{3}, Spread{1, 3, 3, 3, 3, 3}},
		{"two", []float64{2, 1}, Spread{2, 1.25, 1.5, 1.75, 1, 2}},
		{"odd", []float64{5, 1, 4, 2, 3}, Spread{5, 2, 3, 4, 1, 5}},
		{"even", []float64{4, 3, 2, 1}, Spread{4, 1.75, 2.5, 3.25, 1, 4}},
		{"an outlier", []float64{1, 1, 1, 1, 100}, Spread{5, 1, 1, 1, 1, 100}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.v)
			if diff := cmp.Diff(tt.want, SpreadOf(tt.v)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !slices.Equal(before, tt.v) {
				t.Errorf("the argument was changed from %v to %v", before, tt.v)
			}
		})
	}
}

func TestSpreadIsOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(0, 1e9), 1, 50).Draw(t, "v")
		s := SpreadOf(v)
		if !slices.IsSorted([]float64{s.Smallest, s.Q1, s.Median, s.Q3, s.Largest}) {
			t.Fatalf("not in order: %+v", s)
		}
		below := 0
		for _, x := range v {
			if x <= s.Median {
				below++
			}
		}
		if 2*below < len(v) {
			t.Fatalf("only %d of %d lie at or below the median %v", below, len(v), s.Median)
		}
	})
}

func TestMoved(t *testing.T) {
	tests := []struct {
		v    float64
		all  []float64
		want float64
	}{
		{130, []float64{100, 130, 90}, 0.3},
		{60, []float64{100, 60, 120}, 0.4},
		{100, []float64{100}, 0},
		{5, nil, 0},
	}
	for _, tt := range tests {
		if got := Moved(tt.v, tt.all); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("Moved(%v, %v) = %v, want %v", tt.v, tt.all, got, tt.want)
		}
	}
}
