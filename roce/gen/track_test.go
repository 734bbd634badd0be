package gen_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/gen"
)

// TestTrack: against a set of what came, as a book-keeper without a window would count.
func TestTrack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var track gen.Track
		seen := map[uint64]bool{}
		var want gen.TrackCounts
		top := uint64(0)
		for _, seq := range rapid.SliceOf(rapid.Uint64Range(0, 5000)).Draw(t, "seqs") {
			switch {
			case seq >= top:
				top = seq + 1
			case top-seq > 4096:
				want.Ancient++
				continue
			case seen[seq]:
				want.Duplicates++
			default:
				want.Reordered++
			}
			seen[seq] = true
			track.Add(seq)
		}
		// Ancient ones were not added above.
		want.Ancient = 0
		want.Received = uint64(len(seen))
		want.Lost = top - want.Received
		if got := track.Counts(0); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}

// TestTrackTail: what was lost behind the last that came is known from how many were sent.
func TestTrackTail(t *testing.T) {
	var track gen.Track
	track.Add(0)
	track.Add(5000)
	track.Add(0)
	want := gen.TrackCounts{Received: 2, Lost: 5998, Ancient: 1}
	if got := track.Counts(6000); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestJitter: a difference of clocks is none, and one late frame counts a sixteenth.
func TestJitter(t *testing.T) {
	var track gen.Track
	if _, ok := track.Jitter(-1_000_000); ok {
		t.Error("the first frame has a jitter")
	}
	if d, ok := track.Jitter(-1_000_000); d != 0 || !ok || track.MeanJitter() != 0 {
		t.Errorf("%d, %t, %d", d, ok, track.MeanJitter())
	}
	if d, _ := track.Jitter(-1_001_600); d != 1600 || track.MeanJitter() != 100 {
		t.Errorf("%d, %d", d, track.MeanJitter())
	}
}

// TestJitterOfAnyTime: times that no clock has make no negative jitter, and are forgotten.
func TestJitterOfAnyTime(t *testing.T) {
	var track gen.Track
	for range 100 {
		for _, transit := range []int64{math.MinInt64, math.MaxInt64, 0, math.MinInt64 + 1, -1} {
			if d, _ := track.Jitter(transit); d < 0 || track.MeanJitter() < 0 {
				t.Fatalf("behind %d: %d, mean %d", transit, d, track.MeanJitter())
			}
		}
	}
	for range 2000 {
		track.Jitter(5)
	}
	if track.MeanJitter() != 0 {
		t.Errorf("%d after 2000 frames without any", track.MeanJitter())
	}
}

// FuzzRead: no frame makes the reader panic, in whatever two pieces it comes.
func FuzzRead(f *testing.F) {
	frame := make([]byte, maxFrame)
	for _, c := range []gen.Config{
		{Path: path(false, false), Sizes: gen.List(64)},
		{Kind: gen.KindRoCE, Path: path(true, true), Sizes: gen.List(128)},
	} {
		made := flow(f, c)
		f.Add(frame[:made.Next(frame, 0)], 60)
	}
	f.Fuzz(func(_ *testing.T, frame []byte, cut int) {
		var r gen.Reader
		r.Read(frame, nil)
		if cut >= 0 && cut < len(frame) {
			r.Read(frame[:cut], frame[cut:])
		}
	})
}
