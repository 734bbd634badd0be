package engine

import (
	"testing"

	"pgregory.net/rapid"

	"xroce/roce"
)

// TestTxDelay tells the times at which frames were written and had left, and asks.
func TestTxDelay(t *testing.T) {
	const us = roce.Microsecond
	var h txDelay
	ask := func(at, now, want roce.Time) {
		t.Helper()
		if got := h.by(at, now); got != want {
			t.Errorf("written at %d, asked at %d: left by %d, want %d", at, now, got, want)
		}
	}
	ask(1*us, 5*us, 1*us) // nothing is known
	h.wrote(10 * us)
	h.wrote(20 * us)
	ask(9*us, 50*us, 9*us)
	ask(10*us, 50*us, 50*us)
	ask(30*us, 50*us, 50*us)
	h.left(109*us + 999)
	ask(10*us, 200*us, 10*us) // that was not long
	h.wrote(300 * us)
	h.left(400 * us)
	ask(299*us, 500*us, 299*us)
	ask(300*us, 500*us, 400*us)
	ask(399*us, 500*us, 400*us)
	ask(400*us, 500*us, 400*us)
}

// TestTxDelayModel compares with what really happened: never later than that, and
// right for the last long delays.
func TestTxDelayModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var h txDelay
		var all []delay
		now := roce.Time(0)
		step := rapid.Custom(func(t *rapid.T) roce.Time {
			return roce.Time(rapid.IntRange(1, 300).Draw(t, "us")) * roce.Microsecond
		})
		for range rapid.IntRange(1, 30).Draw(rt, "rounds") {
			from := now
			h.wrote(from)
			now += step.Draw(rt, "away")
			h.left(now)
			if now-from >= longDelay {
				all = append(all, delay{from, now})
			}
			now += step.Draw(rt, "idle")
		}
		for i, d := range all {
			want := d.to
			if i < len(all)-len(h.delays) {
				want = d.from // forgotten
			}
			if got := h.by(d.from, now); got != want {
				rt.Errorf("written at %d: left by %d, want %d", d.from, got, want)
			}
		}
	})
}
