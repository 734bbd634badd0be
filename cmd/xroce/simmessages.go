package main

import (
	"context"
	"fmt"
	"time"

	"xroce/cmd/xroce/internal/progress"
	"xroce/engine/sim"
	"xroce/engine/sim/msgtrial"
	"xroce/roce/msg"
)

// simMessagesReport is what `xroce sim --messages --json` prints.
type simMessagesReport struct {
	Seeds       uint64            `json:"seeds"`
	Failed      []simFailure      `json:"failed"`
	Connections uint64            `json:"connections"`
	Messages    uint64            `json:"messages"`
	Lost        uint64            `json:"messages_failed"`
	Received    uint64            `json:"received"`
	Bytes       uint64            `json:"bytes"`
	Refused     uint64            `json:"memory_refused"`
	Packets     uint64            `json:"packets"`
	Protocols   map[string]uint64 `json:"protocols"`
	Reasons     map[string]uint64 `json:"reasons"`
	Faults      map[string]uint64 `json:"faults"`
	Chaos       map[string]uint64 `json:"chaos"`
	Virtual     float64           `json:"virtual_seconds"`
	Seconds     float64           `json:"seconds"`
}

// simMessages runs a campaign of messages and reports.
func (a *app) simMessages(ctx context.Context, c *msgtrial.Campaign) error {
	report := &simMessagesReport{Failed: []simFailure{}}
	total := int64(c.To - c.From + 1)
	line := a.progress("sim", true)
	c.Done = func(done uint64) { line.Update(int64(done), total) }
	c.Failed = func(r *msgtrial.Result) {
		line.Close()
		report.Failed = append(report.Failed, simFailure{
			Seed: r.Seed, Invariant: r.Violation.Invariant.String(), What: r.Violation.What,
			Config: r.Config, Last: r.Last, Replay: r.Replay(),
		})
		if !a.json && len(report.Failed) <= maxShown {
			a.printf("%s\n", r)
		}
	}
	if a.verbose > 0 && !a.json {
		c.Workers, c.Log = 1, a.stdout
	}
	start := a.now()
	sum := c.Run(ctx)
	line.Close()
	report.total(sum, a.now().Sub(start))
	switch {
	case ctx.Err() != nil && sum.Seeds < uint64(total):
		return ctx.Err()
	case a.json:
		if err := a.printJSON(report); err != nil {
			return err
		}
	default:
		a.printSimMessages(report)
	}
	if len(report.Failed) > 0 {
		return exitError{exitFailure, nil}
	}
	return nil
}

// total takes what happened in all seeds.
func (r *simMessagesReport) total(sum *msgtrial.Summary, elapsed time.Duration) {
	s := &sum.Stats
	r.Seeds, r.Connections, r.Packets = sum.Seeds, s.Connections, s.Network[sim.Sent]
	r.Messages, r.Lost, r.Received = s.Messages, s.Failed, s.Received
	r.Bytes, r.Refused = s.Bytes, s.Refused
	r.Protocols = countsByName[msg.Protocol](s.Protocols[:])
	r.Reasons = countsByName[msg.Reason](s.Reasons[:])
	r.Chaos = countsByName[msgtrial.Havoc](s.Chaos[:])
	faults := s.Network
	for k := range sim.NumKinds {
		if !k.Fault() {
			faults[k] = 0
		}
	}
	r.Faults = countsByName[sim.Kind](faults[:])
	r.Virtual, r.Seconds = float64(s.Virtual)/1e9, elapsed.Seconds()
}

// countsByName names counts, those that are not 0.
func countsByName[T interface {
	~uint8
	String() string
}](counts []uint64) map[string]uint64 {
	named := map[string]uint64{}
	for i, n := range counts {
		if n > 0 {
			named[T(i).String()] = n
		}
	}
	return named
}

// printSimMessages prints the totals; the last line is the verdict.
func (a *app) printSimMessages(r *simMessagesReport) {
	a.printf("connections    %d\n", r.Connections)
	a.printf("messages       %d, %s; %d failed with their connection\n", r.Messages,
		progress.Bytes(int64(r.Bytes)), r.Lost)
	a.printf("received       %d\n", r.Received)
	a.printf("protocols      %s\n", sortedCounts(r.Protocols))
	a.printf("reasons        %s\n", sortedCounts(r.Reasons))
	a.printf("memory         %d requests refused\n", r.Refused)
	a.printf("packets        %d\n", r.Packets)
	a.printf("faults         %s\n", sortedCounts(r.Faults))
	a.printf("chaos          %s\n", sortedCounts(r.Chaos))
	a.printf("virtual time   %.1f s\n", r.Virtual)
	a.printf("time           %.1f s, %.0f seeds/s\n", r.Seconds,
		float64(r.Seeds)/max(r.Seconds, 1e-9))
	a.printf("%s", hiddenFailures(r.Failed))
	a.printf("sim: %d seeds, %d failed\n", r.Seeds, len(r.Failed))
}

// hiddenFailures lists the seeds that failed and were not printed.
func hiddenFailures(failed []simFailure) string {
	if len(failed) <= maxShown {
		return ""
	}
	line := "not shown      seeds"
	for _, f := range failed[maxShown:] {
		line += fmt.Sprintf(" %d", f.Seed)
	}
	return line + "\n"
}
