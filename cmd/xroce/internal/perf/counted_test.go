package perf

import "testing"

// TestProgressEnds: what a test tells of its progress ends with all that there is, in one direction
// and in both.
func TestProgressEnds(t *testing.T) {
	for _, test := range Tests {
		for _, both := range []bool{false, true} {
			if both && test.Latency {
				continue
			}
			c := brief(test)
			c.Both = both
			p := newPair(t, c)
			var done, total [2]int64
			for i := range p.ends {
				p.ends[i].Progress = func(n, of int64) { done[i], total[i] = n, of }
			}
			for i, err := range p.run(t) {
				if err != nil || done[i] != total[i] {
					t.Errorf("%s, both %t, end %d: %d of %d, %v", test.Name(), both, i, done[i],
						total[i], err)
				}
			}
		}
	}
}
