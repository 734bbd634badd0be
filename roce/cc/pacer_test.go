package cc_test

import (
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/cc"
	"xroce/roce/clock"
)

// TestNoRate: without a rate nothing is ever early, whatever was sent.
func TestNoRate(t *testing.T) {
	var p cc.Pacer
	for now := range clock.Time(100) {
		if p.Limited() || p.Early(now) || p.Next(now) != now {
			t.Fatalf("held back at %d", now)
		}
		p.Spend(now, 4096)
	}
}

// TestRate: whoever sends as soon as it may sends at the rate, to the nanosecond a
// frame, and somebody who was late catches up with 50 us of it at most.
func TestRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kbps := rapid.Uint32Range(1, 400_000_000).Draw(t, "kbps")
		size := rapid.IntRange(60, 9000).Draw(t, "size")
		late := clock.Time(rapid.Int64Range(0, int64(clock.Second)).Draw(t, "late"))
		var p cc.Pacer
		start := 10 * clock.Second
		p.SetRate(start, kbps)
		now := start + late
		const frames = 100
		for range frames {
			now = p.Next(now)
			if p.Early(now) || p.Early(p.Due()) {
				t.Fatalf("early at %d, due at %d", now, p.Due())
			}
			p.Spend(now, size)
		}
		// Due is when all that was sent has been paid for, counted from where the
		// bucket began: no more than 50 us before the first frame.
		began := max(start, start+late-50*clock.Microsecond)
		bits := int64(frames) * int64(size) * 8
		want := began + clock.Time(bits*int64(clock.Millisecond)/int64(kbps))
		if got := p.Due(); got < want || got > want+late+frames {
			t.Fatalf("paid at %d, not %d", got, want)
		}
		if late == 0 && p.Due() > want+1 {
			t.Fatalf("paid at %d, not %d", p.Due(), want)
		}
	})
}
