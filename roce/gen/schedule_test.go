package gen_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/clock"
	"xroce/roce/gen"
)

// TestParseRate: the suffixes of TRex, and what comes of nonsense.
func TestParseRate(t *testing.T) {
	for text, want := range map[string]gen.Rate{
		"10kpps":   {Value: 10e3},
		"1.5mpps":  {Value: 1.5e6},
		"250":      {Value: 250},
		"7pps":     {Value: 7},
		"10gbps":   {Value: 10e9, Unit: gen.BitsL2},
		"100 Mbps": {Value: 100e6, Unit: gen.BitsL2},
		"10gbpsl1": {Value: 10e9, Unit: gen.BitsL1},
		"50%":      {Value: 50, Unit: gen.OfLineRate},
		"max":      {},
	} {
		got, err := gen.ParseRate(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := gen.ParseRate(got.String()); err != nil || again != want {
			t.Errorf("%q prints as %q: %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{
		"", "x", "-1pps", "0", "10xpps", "nan", "inf", "1e30", "k%",
		"1e-320", "1e-10%",
	} {
		if r, err := gen.ParseRate(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
	half, err := gen.Rate{Value: 50, Unit: gen.OfLineRate}.Resolve(10e9)
	if err != nil || half != (gen.Rate{Value: 5e9, Unit: gen.BitsL1}) {
		t.Errorf("half of 10 Gbit/s is %v, %v", half, err)
	}
	if _, err := (gen.Rate{Value: 50, Unit: gen.OfLineRate}).Resolve(0); err == nil {
		t.Error("half of nothing is a rate")
	}
}

// count sends by a schedule, in virtual time, whatever is due each tick.
func count(s *gen.Schedule, tick clock.Time, size int) (frames int, last clock.Time) {
	for now := clock.Time(0); ; {
		at, ok := s.Next(now)
		if !ok {
			return frames, last
		}
		if at > now { // who sleeps wakes up at a tick
			now = (at + tick - 1) / tick * tick
			continue
		}
		s.Spend(size)
		frames++
		last = now
	}
}

// TestScheduleRate: what goes is what is due, within a frame, at any rate, size, burst and
// clock that is far coarser than the frames.
func TestScheduleRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pps := rapid.Float64Range(1000, 100e3).Draw(t, "pps")
		size := rapid.IntRange(60, 1500).Draw(t, "size")
		tick := clock.Time(rapid.Int64Range(1, 2_000_000).Draw(t, "tick"))
		burst := rapid.IntRange(1, 64).Draw(t, "burst")
		rate := rapid.SampledFrom([]gen.Rate{
			{Value: pps},
			{Value: pps * 8 * float64(size), Unit: gen.BitsL2},
			{Value: pps * 8 * float64(size+gen.Layer1Overhead), Unit: gen.BitsL1},
		}).Draw(t, "rate")
		s, err := gen.NewSchedule(burst, gen.Step{From: rate, For: clock.Second})
		if err != nil {
			t.Fatal(err)
		}
		frames, _ := count(s, tick, size)
		if d := float64(frames) - pps; d < -1 || d > float64(burst) {
			t.Fatalf("%d frames at %g pps", frames, pps)
		}
	})
}

// TestScheduleWholeNumber: a rate of whole packets for whole seconds is exactly that.
func TestScheduleWholeNumber(t *testing.T) {
	for _, pps := range []float64{1, 3, 1000, 10_000, 33_333} {
		s, err := gen.NewSchedule(1, gen.Step{From: gen.Rate{Value: pps}, For: 3 * clock.Second})
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := count(s, 1000, 64); n != 3*int(pps) {
			t.Errorf("%d frames at %g pps for 3 s", n, pps)
		}
	}
}

// TestScheduleRamps: up, on and down again, and each step has what its line comes to.
func TestScheduleRamps(t *testing.T) {
	low, high := gen.Rate{Value: 1000}, gen.Rate{Value: 9000}
	s, err := gen.NewSchedule(1, gen.Step{From: low, To: high, For: clock.Second},
		gen.Step{From: high, For: clock.Second}, gen.Step{From: high, To: low, For: clock.Second})
	if err != nil {
		t.Fatal(err)
	}
	if s.Length() != 3*clock.Second {
		t.Errorf("it lasts %d ns", s.Length())
	}
	var at [3]int
	for now := clock.Time(0); ; {
		next, ok := s.Next(now)
		if !ok {
			break
		}
		now = next
		s.Spend(64)
		at[min(2, now/clock.Second)]++
	}
	for i, want := range [3]int{5000, 9000, 5000} {
		if math.Abs(float64(at[i]-want)) > 2 {
			t.Errorf("second %d: %d frames, want %d", i, at[i], want)
		}
	}
}

// TestScheduleBursts: frames of a burst go at once, and bursts have the rate between them.
func TestScheduleBursts(t *testing.T) {
	s, err := gen.NewSchedule(10, gen.Step{From: gen.Rate{Value: 1000}, For: clock.Second})
	if err != nil {
		t.Fatal(err)
	}
	times := map[clock.Time]int{}
	for now := clock.Time(0); ; {
		next, ok := s.Next(now)
		if !ok {
			break
		}
		now = next
		s.Spend(64)
		times[now]++
	}
	if len(times) != 100 || times[0] != 10 || times[10*clock.Millisecond] != 10 {
		t.Errorf("%d bursts, at the begin %d and 10 ms later %d", len(times), times[0],
			times[10*clock.Millisecond])
	}
}

// TestScheduleMax: as fast as it goes is always now, until the step ends, and nothing of it is
// owed to the next one.
func TestScheduleMax(t *testing.T) {
	s, err := gen.NewSchedule(1, gen.Step{For: clock.Second},
		gen.Step{From: gen.Rate{Value: 10}, For: clock.Second})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if at, ok := s.Next(5); at != 5 || !ok {
			t.Fatalf("due at %d, %t", at, ok)
		}
		s.Spend(64)
	}
	slow := 0
	for now := clock.Second; ; slow++ {
		at, ok := s.Next(now)
		if !ok {
			break
		}
		now = at
		s.Spend(64)
	}
	if slow != 10 {
		t.Errorf("%d frames of the slow step", slow)
	}
}

// TestScheduleRefused: what is no schedule.
func TestScheduleRefused(t *testing.T) {
	p, b := gen.Rate{Value: 1}, gen.Rate{Value: 1, Unit: gen.BitsL2}
	for i, steps := range [][]gen.Step{
		nil,
		{{From: p}, {From: p}},
		{{From: p, For: -1}},
		{{From: p, To: b, For: 1}},
		{{From: p, For: 1}, {From: b}},
		{{From: gen.Rate{Value: 1, Unit: gen.OfLineRate}}},
		{{To: p, For: 1}},
	} {
		if _, err := gen.NewSchedule(1, steps...); !errors.Is(err, gen.ErrSchedule) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := gen.NewSchedule(0, gen.Step{From: p}); !errors.Is(err, gen.ErrSchedule) {
		t.Errorf("bursts of none: %v", err)
	}
}
