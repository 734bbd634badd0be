package main

import (
	"context"

	"xroce/cmd/xroce/internal/progress"
	"xroce/engine/sim/msgtrial"
	"xroce/roce/msg"
)

// simMessagesReport is what `xroce sim --messages --json` prints.
type simMessagesReport struct {
	simTotals
	Rails       uint64            `json:"rails"`
	RailsLost   uint64            `json:"rails_lost"`
	Resumed     uint64            `json:"rails_resumed"`
	SentAgain   uint64            `json:"sent_again"`
	ChunksAgain uint64            `json:"chunks_again"`
	Lost        uint64            `json:"messages_failed"`
	Received    uint64            `json:"received"`
	Refused     uint64            `json:"memory_refused"`
	Protocols   map[string]uint64 `json:"protocols"`
	Reasons     map[string]uint64 `json:"reasons"`
}

// simMessages runs a campaign of messages and reports.
func (a *app) simMessages(ctx context.Context, c *msgtrial.Campaign) error {
	totals, stats, err := runSim(ctx, a, c, msgtrial.RunCampaign)
	if err != nil {
		return err
	}
	report := &simMessagesReport{simTotals: totals}
	report.count(stats)
	return a.reportSim(&report.simTotals, report, func() { a.printSimMessages(report) })
}

// count takes what happened in all seeds.
func (r *simMessagesReport) count(s *msgtrial.Stats) {
	r.simTotals.count(&s.Network, s.Virtual)
	r.Connections, r.Messages, r.Bytes = s.Connections, s.Messages, s.Bytes
	r.Rails, r.RailsLost, r.Resumed = s.Rails, s.RailsLost, s.Resumed
	r.SentAgain, r.ChunksAgain = s.SentAgain, s.ChunksAgain
	r.Lost, r.Received, r.Refused = s.Failed, s.Received, s.Refused
	r.Protocols = countsByName[msg.Protocol](s.Protocols[:])
	r.Reasons = countsByName[msg.Reason](s.Reasons[:])
	r.Chaos = countsByName[msgtrial.Havoc](s.Chaos[:])
}

// printSimMessages prints the totals.
func (a *app) printSimMessages(r *simMessagesReport) {
	a.printf("connections    %d\n", r.Connections)
	a.printf("rails          %d, %d lost; %d changes, %d items and %d parts sent again\n", r.Rails,
		r.RailsLost, r.Resumed, r.SentAgain, r.ChunksAgain)
	a.printf("messages       %d, %s; %d failed with their connection\n", r.Messages,
		progress.Bytes(int64(r.Bytes)), r.Lost)
	a.printf("received       %d\n", r.Received)
	a.printf("protocols      %s\n", sortedCounts(r.Protocols))
	a.printf("reasons        %s\n", sortedCounts(r.Reasons))
	a.printf("memory         %d requests refused\n", r.Refused)
	a.printf("packets        %d\n", r.Packets)
	a.printf("faults         %s\n", sortedCounts(r.Faults))
	a.printf("chaos          %s\n", sortedCounts(r.Chaos))
}
