package gen

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Layer1Overhead is what a frame without FCS costs on the wire beyond its bytes: preamble and
// start (8), FCS (4) and the gap between frames (12).
const Layer1Overhead = 24

// Unit is what a rate counts.
type Unit uint8

// The units of a rate, each a second.
const (
	Packets    Unit = iota // frames
	BitsL2                 // bits of frames without FCS
	BitsL1                 // bits on the wire: see Layer1Overhead
	OfLineRate             // percent of the bits on the wire that the line has
)

// A Rate is how much is to be sent a second. The zero Rate is as fast as it goes.
type Rate struct {
	Value float64 // in the unit, above 0
	Unit  Unit
}

// rateSuffixes are those of TRex, longest first where one ends in another.
var rateSuffixes = []struct {
	suffix string
	factor float64
	unit   Unit
}{
	{"bpsl1", 1, BitsL1}, {"bps", 1, BitsL2}, {"pps", 1, Packets}, {"%", 1, OfLineRate},
}

// ParseRate reads a rate as TRex does: a number and a suffix of pps, kpps, mpps, gpps, bps,
// kbps, mbps, gbps, those of bits with l1 behind them for bits on the wire, or %. A number
// alone is packets. "max" is the zero Rate.
func ParseRate(text string) (Rate, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	if s == "max" {
		return Rate{}, nil
	}
	r := Rate{Unit: Packets}
	factor := 1.0
	for _, x := range rateSuffixes {
		rest, ok := strings.CutSuffix(s, x.suffix)
		if !ok {
			continue
		}
		s, r.Unit = rest, x.unit
		if x.unit != OfLineRate && s != "" {
			if i := strings.IndexByte("kmg", s[len(s)-1]); i >= 0 {
				factor = math.Pow(1000, float64(i+1))
				s = s[:len(s)-1]
			}
		}
		break
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || v*factor < minRate || v*factor > maxRate || math.IsNaN(v) {
		return Rate{}, fmt.Errorf("gen: %q is no rate: give a number and one of pps, kpps, mpps, "+
			"bps, kbps, mbps, gbps, these with l1 behind them, or %%; or max", text)
	}
	r.Value = v * factor
	return r, nil
}

// Bounds of a rate. minRate is far below any use, and far above what parts of it become 0, which
// is as fast as it goes; maxRate keeps sums of many hours exact.
const (
	minRate = 1e-9
	maxRate = 1e13
)

// IsMax reports whether the rate is as fast as it goes.
func (r Rate) IsMax() bool { return r.Value == 0 }

// String prints the rate as ParseRate reads it.
func (r Rate) String() string {
	if r.IsMax() {
		return "max"
	}
	v, prefix := r.Value, ""
	if r.Unit != OfLineRate {
		for _, p := range []string{"k", "m", "g"} {
			if v < 1000 {
				break
			}
			v, prefix = v/1000, p
		}
	}
	suffix := map[Unit]string{
		Packets: "pps", BitsL2: "bps", BitsL1: "bpsl1", OfLineRate: "%",
	}[r.Unit]
	return strconv.FormatFloat(v, 'g', 6, 64) + prefix + suffix
}

// Resolve makes a percentage of a line rate, in bit/s, a rate in bits.
func (r Rate) Resolve(line float64) (Rate, error) {
	if r.Unit != OfLineRate {
		return r, nil
	}
	if line <= 0 {
		return r, fmt.Errorf("gen: %s: the line rate is not known", r)
	}
	return Rate{Value: r.Value / 100 * line, Unit: BitsL1}, nil
}

// cost is what a frame of n bytes spends.
func (u Unit) cost(n int) float64 {
	switch u {
	case BitsL2:
		return float64(8 * n)
	case BitsL1, OfLineRate:
		return float64(8 * (n + Layer1Overhead))
	}
	return 1
}
