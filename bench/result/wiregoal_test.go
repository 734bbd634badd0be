package result

import (
	"math"
	"testing"

	"xroce/bench/worker"
)

// TestDeviationGoals: a rate may be off by a hundredth either way, a frame must not be missing.
func TestDeviationGoals(t *testing.T) {
	d := &Document{Cases: []Case{
		{Name: RateCase, Variants: []string{Rate1k, Rate10k}, Rows: []Row{
			{Variant: Rate1k, Value: 0.992}, {Variant: Rate10k, Value: 1.02},
		}},
		{Name: SinkCase, Variants: []string{SinkFast, SinkSlow}, Rows: []Row{
			{Variant: SinkFast, Value: 1}, {Variant: SinkSlow, Value: 0.999999},
		}},
	}}
	for text, met := range map[string]bool{
		"off the rate asked for, " + Rate1k: true, "off the rate asked for, " + Rate10k: false,
		"frames of which nobody knows, " + SinkFast: true,
		"frames of which nobody knows, " + SinkSlow: false,
	} {
		if v := verdict(t, d, text); v.Met() != met || v.Measured.N != 1 {
			t.Errorf("%s: %+v, %s", text, v.Measured, v)
		}
	}
	if v := verdict(t, d, "off the rate asked for, "+RateMost); v.String() != "not measured" {
		t.Errorf("%s of no rows", v)
	}
}

// TestProcessorTimeGoals: work by processor time is compared round by round, without rounds that
// are void or in which one does not say what it took.
func TestProcessorTimeGoals(t *testing.T) {
	row := func(variant string, round int, nanoseconds int64) Row {
		return Row{Round: round, Variant: variant, Value: 1, Workers: []worker.Report{{
			Bytes: 1000, Cost: &worker.Cost{UserTime: nanoseconds - 1, SystemTime: 1},
		}}}
	}
	void, silent := row(ours, 2, 1), row(ours, 3, 1)
	void.Void, silent.Workers = "moved", nil
	d := &Document{Cases: []Case{{Name: DecodeCase, Variants: []string{ours, Tshark}, Rows: []Row{
		row(ours, 0, 10), row(Tshark, 0, 250), row(Tshark, 1, 460), row(ours, 1, 20),
		void, row(Tshark, 2, 1), silent, row(Tshark, 3, 1), row(Tshark, 4, 1),
	}}}}
	v := verdict(t, d, "decode, of tshark, by processor time")
	if !v.Met() || v.Measured.N != 2 || math.Abs(v.Measured.Median-24) > 1e-9 {
		t.Errorf("%+v, %s, want 25 and 23", v.Measured, v)
	}
}
