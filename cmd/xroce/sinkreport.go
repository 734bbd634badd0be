package main

import (
	"fmt"
	"net"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/xsk"
)

// sinkReport is what `xroce sink --json` prints.
type sinkReport struct {
	Device     string     `json:"device"`
	Flows      int        `json:"flows"`
	Sent       uint64     `json:"sent"` // as far as flows told, or frames show
	Received   uint64     `json:"received"`
	Lost       uint64     `json:"lost"`
	Loss       *float64   `json:"loss_percent"`
	Duplicates uint64     `json:"duplicates"`
	Reordered  uint64     `json:"reordered"`
	Ancient    uint64     `json:"too_late"` // beyond what is remembered of a flow
	Bytes      uint64     `json:"bytes"`
	Seconds    float64    `json:"seconds"` // from the first frame to the last
	PPS        float64    `json:"rate_pps"`
	BPS        float64    `json:"rate_bps"`
	BPSL1      float64    `json:"rate_bps_l1"`
	Latency    *quantiles `json:"latency_ns"`
	Jitter     *quantiles `json:"jitter_ns"`
	Backward   uint64     `json:"before_sent"` // by the clocks of both ends
	Marked     uint64     `json:"ecn_marked"`
	BadICRC    uint64     `json:"bad_icrc"`
	Unsigned   uint64     `json:"roce_unsigned"`
	Foreign    uint64     `json:"foreign"`
	Crowded    uint64     `json:"too_many_flows"`
	Kernel     kernelLoss `json:"kernel"`

	attachReport
	Segments *segmentReport `json:"segments,omitempty"` // where frames came in segments
	PerFlow  []flowReport   `json:"per_flow,omitempty"`
}

// segmentReport is what came of frames in segments.
type segmentReport struct {
	Received   uint64 `json:"received"` // segments
	Complete   uint64 `json:"complete"` // frames, as all that follow
	Expired    uint64 `json:"expired"`
	Stale      uint64 `json:"stale"`
	CrowdedOut uint64 `json:"crowded_out"`
	Broken     uint64 `json:"broken"`
	Unfinished uint64 `json:"unfinished"`
}

// kernelLoss is what the kernel says that it lost at the socket.
type kernelLoss struct {
	Dropped   uint64 `json:"rx_dropped"`
	RingFull  uint64 `json:"rx_ring_full"`
	FillEmpty uint64 `json:"rx_fill_ring_empty_descs"`
}

// flowReport is a flow.
type flowReport struct {
	MAC        string `json:"src_mac"`
	Run        uint8  `json:"run"`
	Flow       uint16 `json:"flow"`
	Sent       uint64 `json:"sent"`
	Received   uint64 `json:"received"`
	Lost       uint64 `json:"lost"`
	Duplicates uint64 `json:"duplicates"`
	Reordered  uint64 `json:"reordered"`
	Ended      bool   `json:"ended"`
	Jitter     int64  `json:"mean_jitter_ns"`
}

func newSinkReport(name string, s *traffic.Sink, st xsk.Stats) sinkReport {
	t := s.Totals()
	c, sent := s.Counts()
	r := sinkReport{
		Device: name, Flows: s.NumFlows(), Sent: sent, Received: c.Received, Lost: c.Lost,
		Duplicates: c.Duplicates, Reordered: c.Reordered, Ancient: c.Ancient, Bytes: t.Bytes,
		Latency: newQuantiles(s.Latency()), Jitter: newQuantiles(s.Jitter()),
		Backward: t.Backward, Marked: t.Marked, BadICRC: t.BadICRC, Unsigned: t.Unsigned,
		Foreign: t.Foreign, Crowded: t.Crowded,
		Kernel: kernelLoss{st.RxDropped, st.RxRingFull, st.RxFillRingEmptyDescs},
	}
	g := s.Segments()
	if g.Segments > 0 {
		r.Segments = &segmentReport{
			g.Segments, g.Completed, g.Expired, g.Stale, g.CrowdedOut, g.Broken, g.Unfinished,
		}
	}
	if sent > 0 {
		loss := 100 * float64(c.Lost) / float64(sent)
		r.Loss = &loss
	}
	if r.Seconds = float64(t.Last-t.First) / 1e9; r.Seconds > 0 {
		r.PPS = float64(t.Signed-1) / r.Seconds // the first one is at the begin
		r.BPS = 8 * float64(t.Bytes) / r.Seconds
		r.BPSL1 = layer1(t.Signed+g.Segments-g.Completed, t.Bytes) / r.Seconds
	}
	return r
}

// maxFlowRows is how many flows a report tells of.
const maxFlowRows = 1024

// addFlows adds the flows.
func (r *sinkReport) addFlows(s *traffic.Sink) {
	for i, f := range s.Flows() {
		if i == maxFlowRows {
			return
		}
		r.PerFlow = append(r.PerFlow, flowReport{
			MAC: net.HardwareAddr(f.MAC[:]).String(), Run: f.Run, Flow: f.Flow, Sent: f.Sent,
			Received: f.Received, Lost: f.Lost, Duplicates: f.Duplicates, Reordered: f.Reordered,
			Ended: f.Ended, Jitter: f.Jitter,
		})
	}
}

// printSink prints the totals.
func (a *app) printSink(r *sinkReport) error {
	if a.json {
		return a.printJSON(r)
	}
	a.printf("%s: received %d of %d frames in %.3f s\n  %s, %s, %s on the wire\n", r.Device,
		r.Received, r.Sent, r.Seconds, metric(r.PPS, "pps"), metric(r.BPS, "bit/s"),
		metric(r.BPSL1, "bit/s"))
	if r.Loss != nil {
		a.printf("lost %d (%.4f %%), duplicates %d, reordered %d, flows %d\n", r.Lost, *r.Loss,
			r.Duplicates, r.Reordered, r.Flows)
	}
	for _, q := range []struct {
		name string
		q    *quantiles
	}{{"latency", r.Latency}, {"jitter", r.Jitter}} {
		if q.q != nil {
			a.printf("%-7s [us]  min %s  mean %s  50%% %s  90%% %s  99%% %s  99.9%% %s  max %s\n",
				q.name, micros(float64(q.q.Min)), micros(q.q.Mean), micros(float64(q.q.P50)),
				micros(float64(q.q.P90)), micros(float64(q.q.P99)), micros(float64(q.q.P999)),
				micros(float64(q.q.Max)))
		}
	}
	a.printAttach(&r.attachReport)
	a.printSegments(r.Segments)
	a.printCounts([]told{
		{"came before they were sent, by the clocks of both ends", r.Backward},
		{"came too late to tell whether for the first time", r.Ancient},
		{"with the mark of congestion", r.Marked},
		{"with a wrong ICRC", r.BadICRC},
		{"RoCE packets without a signature", r.Unsigned},
		{"of no generator", r.Foreign},
		{"of more flows than are remembered", r.Crowded},
		{"lost by the kernel because the receive ring was full", r.Kernel.RingFull},
		{"lost by the kernel for other reasons", r.Kernel.Dropped},
	})
	for _, f := range r.PerFlow {
		a.printf("flow %d of %s: %d sent, %d received, %d lost, %d twice, %d reordered, "+
			"jitter %s us\n", f.Flow, f.MAC, f.Sent, f.Received, f.Lost, f.Duplicates,
			f.Reordered, micros(float64(f.Jitter)))
	}
	return nil
}

// told is how many frames something is to be said of.
type told struct {
	what   string
	frames uint64
}

// printCounts prints those that are not 0.
func (a *app) printCounts(list []told) {
	for _, n := range list {
		if n.frames > 0 {
			a.printf("%d frames %s\n", n.frames, n.what)
		}
	}
}

// printSegments prints what came of frames in segments, if any did.
func (a *app) printSegments(r *segmentReport) {
	if r == nil {
		return
	}
	a.printf("%d segments of %d frames that are complete\n", r.Received, r.Complete)
	a.printCounts([]told{
		{"incomplete: segments did not come in time", r.Expired},
		{"incomplete: the sender was far ahead", r.Stale},
		{"incomplete: others took their place", r.CrowdedOut},
		{"incomplete: segments contradicted each other", r.Broken},
		{"incomplete at the end", r.Unfinished},
	})
}

// micros prints nanoseconds as microseconds.
func micros(ns float64) string { return fmt.Sprintf("%.1f", ns/1000) }
