package analysis

import (
	"math"
	"slices"
	"strings"
	"testing"

	"xroce/roce/analyze"
	"xroce/roce/clock"
)

// TestTicks: the values at an axis are round, inside of it, and not one of them twice.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		whole     bool
		want      []float64
	}{
		{0, 1, true, []float64{0, 1}},
		{0, 3, true, []float64{0, 1, 2, 3}},
		{0, 1, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{0, 29, true, []float64{0, 5, 10, 15, 20, 25}},
		{0, 1.23e9, false, []float64{0, 5e8, 1e9}},
		{0, 6, true, []float64{0, 2, 4, 6}},
	} {
		got := ticks(c.low, c.high, c.whole)
		near := func(a, b float64) bool { return max(a-b, b-a) < 1e-9 }
		if !slices.EqualFunc(got, c.want, near) {
			t.Errorf("%g to %g: %v, want %v", c.low, c.high, got, c.want)
		}
	}
}

// TestAxes: two places of an axis do not bear the same text, however little there is to show.
func TestAxes(t *testing.T) {
	d := analyze.Direction{
		New: analyze.Series{
			Start: 181_000_000, Width: 100 * clock.Microsecond, Bytes: []uint64{5000, 2000},
		},
		PSNs: []analyze.Point{
			{At: 62_900_000, PSN: 0, Mark: analyze.Sent},
			{At: 62_900_900, PSN: 1, Mark: analyze.Naked},
		},
	}
	latency := analyze.Latency{Bars: []analyze.Bar{
		{UpTo: 1_573_000, Count: 1}, {UpTo: 2_621_000, Count: 2}, {UpTo: 335_544_000, Count: 3},
	}}
	for name, svg := range map[string]string{
		"throughput": string(throughput(&d)), "PSNs": string(psns(&d)),
		"latency": string(histogram(&latency)),
	} {
		x, y := map[string]int{}, map[string]int{}
		texts := strings.Split(svg, "<text ")
		if len(texts) < 6 {
			t.Fatalf("%s: %s", name, svg)
		}
		for _, text := range texts[1:] {
			says := text[strings.Index(text, ">")+1 : strings.Index(text, "<")]
			if axis := x; strings.Contains(text, `x="64"`) {
				y[says]++
			} else {
				axis[says]++
			}
		}
		for _, axis := range []map[string]int{x, y} {
			for says, n := range axis {
				if n != 1 {
					t.Errorf("%s: %q is there %d times", name, says, n)
				}
			}
		}
	}
}

// TestRounded: a time has three digits, also the longest that there is.
func TestRounded(t *testing.T) {
	for at, want := range map[clock.Time]string{
		0: "0s", 7: "7ns", 999: "999ns", 1_004: "1µs", 1_005: "1.01µs", 999_499: "999µs",
		999_500: "1ms", 62_900_900: "62.9ms", 335_544_000: "336ms",
		math.MaxInt64: "2561111h6m40s", // 9.22e18 ns
	} {
		if got := rounded(at); got != want {
			t.Errorf("%d ns: %s, want %s", at, got, want)
		}
	}
}
