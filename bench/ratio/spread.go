package ratio

import "slices"

// A Spread is where a set of numbers lies: its median and quartiles, interpolated
// linearly between neighbours (type 7 of Hyndman and Fan, as most tools do it).
type Spread struct {
	N                 int // how many numbers; the rest is 0 when there are none
	Q1, Median, Q3    float64
	Smallest, Largest float64
}

// SpreadOf describes v. It leaves v as it is.
func SpreadOf(v []float64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	s := slices.Sorted(slices.Values(v))
	return Spread{
		N:        len(s),
		Q1:       quantile(s, 0.25),
		Median:   quantile(s, 0.5),
		Q3:       quantile(s, 0.75),
		Smallest: s[0],
		Largest:  s[len(s)-1],
	}
}

// quantile reads the q-quantile, 0 to 1, off sorted numbers.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Moved tells how far the number v lies from the median of all, as a fraction of
// that median: 0.3 is 30 % above or below. Without a median it is 0.
func Moved(v float64, all []float64) float64 {
	m := SpreadOf(all).Median
	if m == 0 {
		return 0
	}
	d := v/m - 1
	if d < 0 {
		return -d
	}
	return d
}
