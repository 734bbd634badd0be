package msg

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// TestSizesHaveTheirRanges: small slots take 100 to 2000 bytes and large ones 1000 to 200000, each
// large one more than the small ones, unless the configuration says that sizes may be any.
func TestSizesHaveTheirRanges(t *testing.T) {
	for _, c := range []struct {
		small, large int // 0 for the default
		any, bad     bool
	}{
		{99, 0, false, true},
		{100, 0, false, false},
		{2000, 0, false, false},
		{2001, 0, false, true},
		{500, 999, false, true},
		{500, 1000, false, false},
		{500, 200_000, false, false},
		{500, 200_001, false, true},
		{1500, 1500, false, true},
		{1500, 1501, false, false},
		{99, 999, true, false},
		{2001, 200_001, true, false},
		{2001, 2001, true, true},
	} {
		config := Config{EagerLimit: c.small, AnySize: c.any, Rand: rand.New(rand.NewPCG(1, 1))}
		if c.large != 0 {
			config.Large = []int{c.large}
		}
		if _, err := New(config); errors.Is(err, ErrInvalid) != c.bad {
			t.Errorf("%d and %d bytes, any %v: %v", c.small, c.large, c.any, err)
		}
	}
}
