package perftest

import (
	"fmt"
	"math"
)

// A Report is the result of a bandwidth test (struct bw_report_data). Bandwidths
// are in the unit that both ends were told to print: MiB/s, or Gb/s with
// --report_gbits.
type Report struct {
	Size    uint64  // bytes of a message
	Iters   uint64  // messages, of all QPs
	Peak    float64 // 0 when it was not measured
	Average float64
	MsgRate float64 // millions of messages a second
}

// reportFields is the number of values, each of which is a step of its own.
const reportFields = 5

// values returns the fields in the order of the wire.
func (r Report) values() [reportFields]uint64 {
	return [...]uint64{
		r.Size, r.Iters, math.Float64bits(r.Peak), math.Float64bits(r.Average),
		math.Float64bits(r.MsgRate),
	}
}

// reportOf is the reverse of values.
func reportOf(v [reportFields]uint64) Report {
	return Report{
		Size: v[0], Iters: v[1], Peak: math.Float64frombits(v[2]),
		Average: math.Float64frombits(v[3]), MsgRate: math.Float64frombits(v[4]),
	}
}

// Check returns ErrMessage for what no measurement has as its result. Who measured nothing
// has something else in there than numbers, so a report is checked where it is used. A peak
// that is none was not measured.
func (r *Report) Check() error {
	measured := func(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }
	if !measured(r.Average) || !measured(r.MsgRate) {
		return fmt.Errorf("%w: a bandwidth of %g and a message rate of %g are no result",
			ErrMessage, r.Average, r.MsgRate)
	}
	if !measured(r.Peak) {
		r.Peak = 0
	}
	return nil
}
