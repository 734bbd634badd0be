package perf

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"xroce/engine/oob/perftest"
	"xroce/roce"
)

// TestSlotsStayInTheirPart: whatever the peer asks for, no message leaves the part
// of its QP, and messages do not overlap.
func TestSlotsStayInTheirPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{
			QPs:  rapid.IntRange(1, 5).Draw(t, "qps"),
			Size: rapid.IntRange(1, 20000).Draw(t, "largest"),
			Type: rapid.SampledFrom([]roce.QPType{roce.TypeRC, roce.TypeUD}).Draw(t, "type"),
		}
		l, err := newLayout(&c, perftest.System{
			Cycle:     rapid.IntRange(4096, 1<<17).Draw(t, "cycle"),
			CacheLine: 1 << rapid.IntRange(0, 10).Draw(t, "line"),
		})
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(1, c.Size).Draw(t, "size") + c.header()
		count, stride := l.slots(n)
		if count < 1 || count > 1 && stride < uint64(n) ||
			(count-1)*stride+uint64(n) > uint64(l.part) {
			t.Errorf("%+v: %d slots of %d bytes, %d apart", l, count, n, stride)
		}
		if l.in(c.QPs-1)+l.part > l.size() || l.out(c.QPs-1)+l.part > l.in(0) {
			t.Errorf("%+v: parts overlap", l)
		}
	})
}

func TestTooMuchMemory(t *testing.T) {
	c := Config{QPs: 16384, Size: 1 << 30}
	if _, err := newLayout(&c, perftest.System{Cycle: 4096, CacheLine: 64}); !errors.Is(err,
		roce.ErrInvalid) {
		t.Errorf("%v", err)
	}
}
