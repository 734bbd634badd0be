package queue

import (
	"errors"
	"testing"

	"xroce/roce/verbs"
)

// TestResizeKeeps what is in the CQ, wherever in the ring it is, and refuses a
// depth that is too small for it.
func TestResizeKeeps(t *testing.T) {
	for start := range uint64(8) { // where the ring stands
		for held := range uint64(8) {
			for depth := -1; depth < 20; depth++ {
				c, err := NewCQ(8, nil)
				if err != nil {
					t.Fatal(err)
				}
				dst := make([]verbs.Completion, 16)
				for i := range start + held {
					if i == start {
						_, _ = c.Poll(dst)
					}
					c.Push(&verbs.Completion{WRID: i}, false)
				}
				if held == 0 {
					_, _ = c.Poll(dst)
				}
				err = c.Resize(depth)
				if ok := depth >= 1 && depth >= int(held); errors.Is(err, verbs.ErrInvalid) == ok {
					t.Errorf("%d held, depth %d: %v", held, depth, err)
				}
				if err != nil && c.Depth() != 8 || err == nil && c.Depth() < depth {
					t.Errorf("asked for depth %d, is %d, %v", depth, c.Depth(), err)
				}
				n, err := c.Poll(dst)
				if n != int(held) || err != nil {
					t.Errorf("depth %d: %d completions, want %d, %v", depth, n, held, err)
				}
				for i, wc := range dst[:n] {
					if want := start + uint64(i); wc.WRID != want {
						t.Errorf("depth %d: completion %d, want %d", depth, wc.WRID, want)
					}
				}
			}
		}
	}
	c, err := NewCQ(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Resize(MaxCQDepth + 1); !errors.Is(err, verbs.ErrInvalid) {
		t.Error(err)
	}
}
