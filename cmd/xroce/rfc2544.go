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
		a.printf("%6s %14s %16s %14s %8s %8s\n", "bytes", "lossless", "on the wire", "offered",
			"loss %", "trials")
	}
	for _, size := range sizes {
		row, err := f.search(ctx, port, int(size))
		if err != nil {
			return err
		}
		r.Rows = append(r.Rows, row)
		if !a.json {
			a.printf("%6d %14s %16s %14s %8.4f %8d\n", row.Size, metric(row.PPS, "pps"),
				metric(row.BPSL1, "bit/s"), metric(row.Most, "pps"), row.Loss, row.Trials)
		}
	}
	if f.plot != "" {
		if err := writeSearchPlot(f.plot, &r); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(r)
	}
	return nil
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
	row.PPS, row.Loss = most.rate, most.loss
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
	row.Loss = 0
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
			row.Loss = t.loss
		}
		row.Tried = append(row.Tried, searchTrial{t.rate, t.loss, good})
		s.Tell(good)
	}
}

// A trialResult is what came of a trial: packets a second that were sent, and loss in percent.
type trialResult struct{ rate, loss float64 }

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
	received, ok, err := port.Confirm(ctx, s)
	switch {
	case err != nil:
		return t, err
	case ctx.Err() != nil:
		return t, context.Cause(ctx)
	case !ok:
		return t, errNoSink
	case sent.Frames == 0:
		return t, fmt.Errorf("nothing was sent at %s in %s", rate, f.step.Duration)
	}
	lost := s.Numbered() - min(received, s.Numbered())
	row.Trials++
	row.Sent += sent.Frames
	row.Recv += received
	row.Lost += lost
	t.rate = float64(sent.Frames) / seconds(sent.Duration)
	t.loss = 100 * float64(lost) / float64(s.Numbered())
	return t, nil
}
