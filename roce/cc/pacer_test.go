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

// TestAdjust: the frame that waits goes when it was due, and those behind it at the new rate.
func TestAdjust(t *testing.T) {
	var p cc.Pacer
	p.Adjust(0, 8) // a byte a millisecond
	p.Spend(0, 100)
	p.Adjust(1, 8000)
	if p.Due() != 100*clock.Millisecond {
		t.Errorf("due at %d", p.Due())
	}
	p.Spend(p.Due(), 100)
	if p.Due() != 100*clock.Millisecond+100*clock.Microsecond {
		t.Errorf("due at %d", p.Due())
	}
	if p.Adjust(0, 0); p.Limited() {
		t.Error("a rate of 0 is a limit")
	}
}
