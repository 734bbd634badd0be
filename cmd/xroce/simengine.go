package main

import (
	"context"

	"xroce/cmd/xroce/internal/progress"
	"xroce/engine/sim/trial"
	"xroce/roce"
)

// simReport is what `xroce sim --json` prints.
type simReport struct {
	simTotals
	Retransmits uint64            `json:"retransmits"`
	Errors      map[string]uint64 `json:"completion_errors"`
	Operations  map[string]uint64 `json:"operations"`
	Events      map[string]uint64 `json:"events"`
	LostUC      uint64            `json:"uc_messages_lost"`
}

// simEngine runs a campaign of queue pairs and reports.
func (a *app) simEngine(ctx context.Context, c *trial.Campaign) error {
	totals, stats, err := runSim(ctx, a, c, trial.RunCampaign)
	if err != nil {
		return err
	}
	report := &simReport{simTotals: totals}
	report.count(stats)
	return a.reportSim(&report.simTotals, report, func() { a.printSim(report) })
}

// count takes what happened in all seeds.
func (r *simReport) count(s *trial.Stats) {
	r.simTotals.count(&s.Network, s.Virtual)
	r.Connections, r.Messages, r.Bytes = s.Connections, s.Messages, s.Bytes
	r.Retransmits, r.LostUC = s.Retransmits, s.Lost
	r.Chaos = countsByName[trial.Havoc](s.Chaos[:])
	r.Errors = countsByName[roce.Status](s.Errors[:])
	r.Events = countsByName[roce.Event](s.Events[:])
	r.Operations = map[string]uint64{}
	for row, n := range s.Ops {
		if n > 0 {
			r.Operations[trial.OpName(row)] = n
		}
	}
}

// printSim prints the totals.
func (a *app) printSim(r *simReport) {
	a.printf("connections    %d\n", r.Connections)
	a.printf("messages       %d, %s\n", r.Messages, progress.Bytes(int64(r.Bytes)))
	a.printf("operations     %s\n", sortedCounts(r.Operations))
	a.printf("lost by UC     %d messages\n", r.LostUC)
	a.printf("packets        %d, %d of them repeated by the transport\n", r.Packets, r.Retransmits)
	a.printf("faults         %s\n", sortedCounts(r.Faults))
	a.printf("chaos          %s\n", sortedCounts(r.Chaos))
	a.printf("errors         %s\n", sortedCounts(r.Errors))
	a.printf("events         %s\n", sortedCounts(r.Events))
}
