package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/gen"
)

// errNoSink means that a search has nobody who tells what came.
var errNoSink = errors.New("no sink answers: start 'xroce sink -d IFACE --keep' at the other end")

// searchFraction is what a search leaves unknown of the largest rate.
const searchFraction = 0.01

// reached is how much of a rate must have been sent for a trial at it.
const reached = 0.99

// defaultTrial is how long a trial lasts.
const defaultTrial = time.Second

// rfc2544Sizes are those of RFC 2544, 9.1, without FCS, and the smallest one is that in which
// a signature has room.
var rfc2544Sizes = []uint64{64, 124, 252, 508, 1020, 1276, 1514}

// A searchRow is what a search found for a size of frames.
type searchRow struct {
	Size   int     `json:"size"`
	Most   float64 `json:"offered_pps"` // as fast as it went
	PPS    float64 `json:"rate_pps"`
	BPSL1  float64 `json:"rate_bps_l1"`
	Loss   float64 `json:"loss_percent"` // of the last trial that was good
	Trials int     `json:"trials"`
	Sent   uint64  `json:"sent"` // in all trials
	Recv   uint64  `json:"received"`
	Lost   uint64  `json:"lost"`

	Tried []searchTrial `json:"tried"` // in order

	// Latency is that of the last good trial (RFC 8219, 7.2 to 7.4), null when the sink told none.
	Latency *searchLatency `json:"latency_ns"`
}

// A searchLatency is how long frames were under way by the clocks of both ends, in nanoseconds.
type searchLatency struct {
	Min    uint32 `json:"min"`
	Mean   uint32 `json:"mean"`
	Max    uint32 `json:"max"`
	Jitter uint32 `json:"jitter"` // mean difference from one frame to the next, of RFC 3550
}

// newSearchLatency is nil for what nobody has told.
func newSearchLatency(t gen.Transit) *searchLatency {
	if t.Max == 0 {
		return nil
	}
	return &searchLatency{t.Min, t.Mean, t.Max, t.Jitter}
}

// String is the latency in microseconds: least, mean, largest and variation.
func (l *searchLatency) String() string {
	if l == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f/%.1f/%.1f/%.1f", float64(l.Min)/1e3, float64(l.Mean)/1e3,
		float64(l.Max)/1e3, float64(l.Jitter)/1e3)
}

// A searchTrial is what came of a trial (RFC 2544, 26.3: loss by the load that was offered).
type searchTrial struct {
	Rate float64 `json:"rate_pps"` // that was sent
	Loss float64 `json:"loss_percent"`
	Good bool    `json:"good"`
}

// searchReport is what `xroce pktgen --rfc2544 --json` prints.
type searchReport struct {
	Device  string      `json:"device"`
	To      string      `json:"to"`
	MaxLoss float64     `json:"max_loss_percent"`
	Trial   float64     `json:"trial_seconds"`
	Rows    []searchRow `json:"rows"`
}

// rfc2544 searches the largest rate without loss for each size.
func (a *app) rfc2544(ctx context.Context, f *pktgenFlags) error {
	picture, err := openResult(f.plot)
	if err != nil {
		return err
	}
	defer picture.close()
	port, err := a.openSender(ctx, &f.port, f.plan.To)
	if err != nil {
		return advise(err, f.port.Interface)
	}
	defer port.Close()
	port.Route.Run = uint8(rand.Uint32())
	sizes, err := f.searchSizes(port.Route.MaxFrame)
	if err != nil {
		return err
	}
	r := searchReport{
		Device: port.Name, To: f.plan.To, MaxLoss: f.maxLoss.percent,
		Trial: f.step.Duration.Seconds(),
	}
	if !a.json {
		a.printf("%6s %12s %15s %12s %7s %6s  %s\n", "bytes", "lossless", "on the wire",
			"offered", "loss %", "trials", "us min/mean/max/jitter")
	}
	for _, size := range sizes {
		var row searchRow
		if row, err = f.search(ctx, port, int(size)); err != nil {
			break
		}
		r.Rows = append(r.Rows, row)
		if !a.json {
			a.printf("%6d %12s %15s %12s %7.4f %6d  %s\n", row.Size, metric(row.PPS, "pps"),
				metric(row.BPSL1, "bit/s"), metric(row.Most, "pps"), row.Loss, row.Trials,
				row.Latency)
		}
	}
	if len(r.Rows) == 0 {
		return err
	}
	// What was found is told, whatever came then.
	err = errors.Join(err, picture.fill(r.draw))
	if a.json {
		err = errors.Join(err, a.printJSON(r))
	}
	return err
}

// searchSizes are those of the command line, or of the RFC as far as the interface takes them.
func (f *pktgenFlags) searchSizes(most int) (sizes []uint64, err error) {
	if f.flow.Size == "" {
		for _, n := range rfc2544Sizes {
			if n <= uint64(most) {
				sizes = append(sizes, n)
			}
		}
		return sizes, nil
	}
	v, err := gen.ParseSizes(f.flow.Size, f.plan.Seed)
	if err != nil {
		return nil, usageError{err}
	}
	return v.All(maxSearchSizes), nil
}

// maxSearchSizes bounds how many sizes are searched.
const maxSearchSizes = 64

// search finds the rate of a size.
func (f *pktgenFlags) search(ctx context.Context, port *traffic.SendPort, size int) (
	row searchRow, err error,
) {
	row.Size = size
	most, err := f.trial(ctx, port, &row, "max")
	if err != nil {
		return row, err
	}
	row.Most = most.rate
	good := most.loss <= f.maxLoss.percent
	row.Tried = []searchTrial{{most.rate, most.loss, good}}
	row.PPS, row.Loss, row.Latency = most.rate, most.loss, most.latency
	if !good {
		if err := f.narrow(ctx, port, &row); err != nil {
			return row, err
		}
	}
	row.BPSL1 = 8 * row.PPS * float64(size+gen.Layer1Overhead)
	return row, nil
}

// narrow searches below a rate at which too much was lost.
func (f *pktgenFlags) narrow(ctx context.Context, port *traffic.SendPort, row *searchRow) error {
	s := gen.NewSearch(row.Most, searchFraction)
	row.Loss, row.Latency = 0, nil
	for {
		rate, ok := s.Next()
		if !ok {
			row.PPS = s.Found()
			return nil
		}
		t, err := f.trial(ctx, port, row, strconv.FormatFloat(rate, 'f', 3, 64))
		if err != nil {
			return err
		}
		good := t.loss <= f.maxLoss.percent && t.rate >= reached*rate
		if good {
			row.Loss, row.Latency = t.loss, t.latency
		}
		row.Tried = append(row.Tried, searchTrial{t.rate, t.loss, good})
		s.Tell(good)
	}
}

// A trialResult is what came of a trial: packets a second that were sent, and loss in percent.
type trialResult struct {
	rate, loss float64
	latency    *searchLatency
}

// trial sends for a while at a rate.
func (f *pktgenFlags) trial(ctx context.Context, port *traffic.SendPort, row *searchRow,
	rate string,
) (t trialResult, err error) {
	plan := f.plan
	flow := f.flow
	flow.Size = strconv.Itoa(row.Size)
	plan.Flows = []traffic.PlanFlow{flow}
	plan.Steps = []traffic.PlanStep{{Rate: rate, Duration: f.step.Duration}}
	port.Route.Run++
	flows, err := plan.Make(port.Route)
	if err != nil {
		return t, usageError{err}
	}
	schedule, err := plan.Schedule(1)
	if err != nil {
		return t, err
	}
	s := &traffic.Sender{
		Link: port.Link, Flows: flows, Schedule: schedule, Batch: f.batchOf(port),
		Clock: traffic.NewSystem(f.busy),
	}
	sent, err := s.Run(ctx)
	if err != nil {
		return t, err
	}
	of, ok, err := port.Confirm(ctx, s)
	switch {
	case err != nil:
		return t, err
	case ctx.Err() != nil:
		return t, context.Cause(ctx)
	case !ok:
		return t, errNoSink
	case sent.Frames == 0:
		return t, fmt.Errorf("nothing was sent at %s in %s", rate, f.step.Duration)
	case s.Numbered() == 0: // of a sequence in which others come before
		return t, fmt.Errorf("nothing that a sink counts was sent at %s in %s", rate,
			f.step.Duration)
	}
	lost := s.Numbered() - min(of.Received, s.Numbered())
	row.Trials++
	row.Sent += sent.Frames
	row.Recv += of.Received
	row.Lost += lost
	t.rate = float64(sent.Frames) / seconds(sent.Duration)
	t.loss = 100 * float64(lost) / float64(s.Numbered())
	t.latency = newSearchLatency(of.Transit)
	return t, nil
}
