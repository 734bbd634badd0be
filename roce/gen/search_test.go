package gen_test

import (
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/gen"
)

// TestSearch: whatever a wire can do, the search finds it to its fraction, in few trials.
func TestSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Float64Range(1000, 1e9).Draw(t, "most")
		limit := rapid.Float64Range(0, 1.5).Draw(t, "limit") * most
		s := gen.NewSearch(most, 0.01)
		trials := 0
		for {
			rate, ok := s.Next()
			if !ok {
				break
			}
			if trials++; trials > 9 {
				t.Fatal("it does not end")
			}
			s.Tell(rate <= limit)
		}
		want := min(limit, most)
		if got := s.Found(); got > want || got < want-0.01*most {
			t.Fatalf("found %g of %g", got, want)
		}
	})
}
