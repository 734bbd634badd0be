package result

import (
	"math"

	"xroce/bench/ratio"
	"xroce/bench/worker"
)

// Cases and variants of the wire tools: pktgen, sink, --capture, decode and analyze.
const (
	PktgenCase = "pktgen-64"
	Pktgen     = "xroce pktgen" // the command, of which "ours" is the loop
	Xdpsock    = "as xdpsock's defaults (C)"
	Iperf3UDP  = "iperf3 -u"
	Testpmd    = "DPDK testpmd"

	RateCase = "pktgen-rate"
	Rate1k   = "1 kpps"
	Rate10k  = "10 kpps"
	Rate100k = "100 kpps"
	RateMost = "0.8 of the largest"

	SinkCase   = "sink-64"
	SinkFast   = "as fast as it goes"
	SinkSlow   = "10 kpps"
	SinkBursts = "100 kpps in bursts"

	CaptureCase       = "capture-64"
	NotCaptured       = "not captured"
	CapturedSending   = "captured at the sender"
	CapturedReceiving = "captured at the receiver"
	CapturedBoth      = "captured at both ends"

	DecodeCase  = "decode"
	AnalyzeCase = "decode-analyze"
	Tshark      = "tshark"
	Capinfos    = "capinfos"
)

// wireGoals are those of the wire tools.
func wireGoals() []Goal {
	goals := []Goal{
		{
			"pktgen 64 B, of xdpsock's defaults", 1.15, false, PktgenCase, Pktgen, Xdpsock,
			in(against),
		},
		{"pktgen 64 B, of iperf3 -u", 4, false, PktgenCase, Pktgen, Iperf3UDP, in(against)},
		{"pktgen 64 B, of DPDK testpmd", 1.05, false, PktgenCase, Pktgen, Testpmd, in(against)},
	}
	for _, rate := range []string{Rate1k, Rate10k, Rate100k, RateMost} {
		goals = append(goals, Goal{
			"off the rate asked for, " + rate, 0.01, true, RateCase, rate, "", in(deviations),
		})
	}
	for _, how := range []string{SinkFast, SinkSlow, SinkBursts} {
		goals = append(goals, Goal{
			"frames of which nobody knows, " + how, 0, true, SinkCase, how, "", in(deviations),
		})
	}
	for _, end := range []string{CapturedSending, CapturedReceiving, CapturedBoth} {
		goals = append(goals, Goal{
			"SEND of 64 B " + end + ", of not captured", 0.9, false, CaptureCase, end, NotCaptured,
			in(against),
		})
	}
	for _, one := range []struct{ name, what string }{
		{DecodeCase, "decode"}, {AnalyzeCase, "analyze"},
	} {
		goals = append(goals,
			Goal{one.what + ", of tshark", 20, false, one.name, ours, Tshark, in(against)},
			Goal{
				one.what + ", of tshark, by processor time", 20, false, one.name, ours, Tshark,
				in(byProcessorTime),
			})
	}
	return goals
}

// deviations are how far the values of the variant are from 1.
func deviations(c *Case, g *Goal) ratio.Spread {
	return c.spread(g.Variant, func(r *Row) (float64, bool) {
		return math.Abs(r.Value - 1), r.Value > 0
	})
}

// byProcessorTime is the ratio of the variant to the peer in work by second of processor time.
func byProcessorTime(c *Case, g *Goal) ratio.Spread {
	peers := c.byRound(g.Peer)
	var ratios []float64
	for _, mine := range c.byRound(g.Variant) {
		theirs := peers[mine.Round]
		a, b := perProcessorTime(&mine), perProcessorTime(&theirs)
		if mine.Void == "" && theirs.Void == "" && a > 0 && b > 0 {
			ratios = append(ratios, a/b)
		}
	}
	return ratio.SpreadOf(ratios)
}

// perProcessorTime is what the first worker of a row did in a nanosecond of processor time, in
// bytes; 0 when it does not say.
func perProcessorTime(r *Row) float64 {
	if len(r.Workers) == 0 || r.Workers[0].Cost == nil {
		return 0
	}
	w := &r.Workers[0]
	if spent := processorTime(w); spent > 0 {
		return float64(w.Bytes) / spent
	}
	return 0
}

// processorTime is that of a worker in nanoseconds.
func processorTime(w *worker.Report) float64 {
	return float64(w.Cost.UserTime + w.Cost.SystemTime)
}
