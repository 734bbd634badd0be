package dissect

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestNumbers: numbers are written as package strconv and package fmt write them, of all lengths.
func TestNumbers(t *testing.T) {
	check := func(v uint64) error {
		if got, want := string(AppendDecimal(nil, v)), strconv.FormatUint(v, 10); got != want {
			return fmt.Errorf("%q, want %q", got, want)
		}
		for width := range 9 {
			limit := uint64(math.Pow10(width + 1))
			want := fmt.Sprintf("%0*d", width+1, v%limit)
			if got := string(AppendZeros(nil, uint32(v%limit), width+1)); got != want {
				return fmt.Errorf("%q, want %q", got, want)
			}
		}
		if got, want := string(appendHex24(nil, uint32(v)&0xffffff)),
			fmt.Sprintf("%06x", v&0xffffff); got != want {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	}
	for _, v := range []uint64{math.MaxUint64, 0} {
		if err := check(v); err != nil {
			t.Error(err)
		}
	}
	for p := uint64(1); p < 1e19; p *= 10 {
		for _, v := range []uint64{p - 1, p, p + 1} {
			if err := check(v); err != nil {
				t.Error(err)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64().Draw(t, "v") >> rapid.IntRange(0, 63).Draw(t, "shift")
		if err := check(v); err != nil {
			t.Fatal(err)
		}
	})
}
