package match_test

import (
	"fmt"
	"testing"

	"xroce/roce/msg/match"
)

// A crowd has receives or messages that wait, and some to spare, for tests of what a
// call costs.
type crowd struct {
	x        *matcher
	peer     match.Peer[receive, message]
	receives []receive
	messages []message
}

// newCrowd makes so many of each, of which none is queued.
func newCrowd(tb testing.TB, n int) *crowd {
	tb.Helper()
	c := &crowd{
		x:        match.New[receive, message]([2]uint64{3, 4}),
		receives: make([]receive, n), messages: make([]message, n),
	}
	if err := c.x.Add(&c.peer); err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		c.receives[i].node.Init(&c.receives[i])
		c.messages[i].node.Init(&c.messages[i])
	}
	return c
}

// post posts a receive of the tag that is its number, and reports whether it got a
// message.
func (c *crowd) post(tb testing.TB, i int, mask uint64) bool {
	m, err := c.x.Post(&c.receives[i].node, uint64(i), mask, &c.peer)
	if err != nil {
		tb.Fatal(err)
	}
	return m != nil
}

// arrive lets a message of the tag that is its number come, and reports whether it got
// a receive.
func (c *crowd) arrive(tb testing.TB, i int) bool {
	r, err := c.x.Arrive(&c.messages[i].node, &c.peer, uint64(i), 1)
	if err != nil {
		tb.Fatal(err)
	}
	return r != nil
}

// almost is a mask that is not Exact, though none of the tags here shows it.
const almost = match.Exact >> 1

// TestNoAllocations fills and empties both queues by all calls there are.
func TestNoAllocations(t *testing.T) {
	const n = 1000
	c := newCrowd(t, n)
	maskOf := func(i int) uint64 {
		if i%10 == 0 {
			return almost
		}
		return match.Exact
	}
	nothing := func(*message) {}
	round := func() {
		for i := range n {
			c.arrive(t, i)
		}
		for i := range n / 2 {
			c.post(t, i, maskOf(i))
		}
		for i := n / 2; i < n; i++ {
			if c.x.Probe(uint64(i), maskOf(i), nil) == nil {
				t.Fatal("a message is not there")
			}
			if i%2 == 0 {
				c.x.Claim(uint64(i), maskOf(i), nil)
			} else {
				c.x.Withdraw(&c.messages[i].node)
			}
		}
		for i := range n {
			c.post(t, i, maskOf(i))
		}
		for i := range n {
			if i%4 == 0 {
				c.x.Cancel(&c.receives[i].node)
			} else if !c.arrive(t, i) {
				t.Fatal("a receive is not there")
			}
		}
		c.arrive(t, 0)
		if c.x.Forget(&c.peer, nothing, nil) != nil || c.x.Add(&c.peer) != nil {
			t.Fatal("the peer is not forgotten and added")
		}
	}
	if got := testing.AllocsPerRun(20, round); got != 0 {
		t.Errorf("%v allocations a round", got)
	}
}

// waiting are how many wait in a benchmark.
var waiting = []int{1, 100, 10_000}

// kinds are the receives of a benchmark.
var kinds = []struct {
	name string
	mask uint64
}{{"exact", match.Exact}, {"masked", almost}}

// BenchmarkArrive measures a message that finds its receive, and that receive posted
// again: a pair of calls. So many receives wait; the message is for the one that was
// posted last, which for masked ones is the longest way.
func BenchmarkArrive(b *testing.B) {
	for _, kind := range kinds {
		mask := kind.mask
		for _, n := range waiting {
			b.Run(fmt.Sprintf("%s/receives=%d", kind.name, n), func(b *testing.B) {
				c := newCrowd(b, n)
				for i := range n {
					c.post(b, i, mask)
				}
				b.ReportAllocs()
				for b.Loop() {
					if !c.arrive(b, n-1) || c.post(b, n-1, mask) {
						b.Fatal("not matched, or twice")
					}
				}
			})
		}
	}
}

// BenchmarkPost measures a receive that finds its message, and that message once more:
// a pair of calls. So many messages are unexpected; the receive is for the one that
// came last, which for masked ones is the longest way.
func BenchmarkPost(b *testing.B) {
	for _, kind := range kinds {
		mask := kind.mask
		for _, n := range waiting {
			b.Run(fmt.Sprintf("%s/messages=%d", kind.name, n), func(b *testing.B) {
				c := newCrowd(b, n)
				for i := range n {
					c.arrive(b, i)
				}
				b.ReportAllocs()
				for b.Loop() {
					if !c.post(b, n-1, mask) || c.arrive(b, n-1) {
						b.Fatal("not matched, or twice")
					}
				}
			})
		}
	}
}
