package result

import (
	"fmt"
	"strings"

	"xroce/bench/ratio"
	"xroce/bench/worker"
)

// SizePrefix begins the names of the cases that compare the protocols of messages, which end with
// the length of a message.
const SizePrefix = "msg-size-"

// The names by which the goals of messages find variants.
const (
	send     = "SEND"
	write    = "WRITE"
	ucx      = "UCX over TCP"
	udpGSO   = "UDP GSO and GRO"
	udpNoXDP = "UDP GSO and GRO, no XDP"
)

// protocolSizes are the lengths of messages whose protocols are compared.
var protocolSizes = []int{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}

// messageGoals are those of messages.
func messageGoals() []Goal {
	goals := []Goal{
		{"messages of 64 B, of UCX over TCP", 3, false, "msg-64", ours, ucx, in(against)},
		{"messages of 64 B, of our SEND", 0.8, false, "msg-64", ours, send, in(against)},
		{"messages of 64 B, of UDP with GSO", 1, false, "msg-64", ours, udpGSO, in(against)},
		{
			"messages of 64 B, of UDP with GSO without XDP", 1, false, "msg-64", ours, udpNoXDP,
			in(against),
		},
		{
			"half round trip of a message, of our SEND", 1.15, true,
			"msg-rtt-64", ours, send, in(against),
		},
		{"messages of 1 MiB, of our WRITE", 0.95, false, "msg-1m", ours, write, in(against)},
		{"messages of 1 MiB, of UCX over TCP", 1.3, false, "msg-1m", ours, ucx, in(against)},
	}
	for _, length := range protocolSizes {
		goals = append(goals, Goal{
			fmt.Sprintf("choice at %d B, of the best protocol's lower quartile", length), 1, false,
			fmt.Sprint(SizePrefix, length), ours, "", in(ofBest),
		})
	}
	return append(goals,
		Goal{
			"allocations a message of 64 B", 0, true, "", "", "",
			heapOf(worker.Messages, "msg-64", allocations),
		},
		Goal{
			"allocations a message of any length", 0, true, "", "", "",
			heapOf(worker.Messages, SizePrefix, allocations),
		})
}

// ofBest is the variant by the lower quartile of the best of the others: that with the highest
// median. So a choice that lies within the noise of the best one is at least 1.
func ofBest(c *Case, g *Goal) ratio.Spread {
	best := c.Best(g.Variant)
	if best == "" {
		return ratio.Spread{}
	}
	floor := c.Values(best).Q1
	return c.spread(g.Variant, func(r *Row) (float64, bool) {
		v, ok := value(r)
		return v / floor, ok
	})
}

// Best is the variant with the best median, but for one; "" when nothing was measured.
func (c *Case) Best(except string) string {
	best, median := "", 0.0
	for _, v := range c.Variants {
		s := c.Values(v)
		if v == except || s.N == 0 {
			continue
		}
		if better := s.Median > median != c.LowerIsBetter; best == "" || better {
			best, median = v, s.Median
		}
	}
	return best
}

// Values is where the values of a variant lie.
func (c *Case) Values(variant string) ratio.Spread { return c.spread(variant, value) }

// Case finds a case by its name, nil when it was not measured.
func (d *Document) Case(name string) *Case {
	for i := range d.Cases {
		if d.Cases[i].Name == name {
			return &d.Cases[i]
		}
	}
	return nil
}

// protocolTable has what each protocol carries at each length, and the choice.
func (d *Document) protocolTable() table {
	t := table{
		title: "Messages by protocol, medians; the choice by the best of the others",
		header: []string{
			"case", "unit", "eager", "provision", "get", "put", "frag", "chosen", "best",
			"chosen by best", "quartiles",
		},
	}
	for i := range d.Cases {
		c := &d.Cases[i]
		if !strings.HasPrefix(c.Name, SizePrefix) {
			continue
		}
		row := []string{c.Name, c.unit()}
		for _, v := range t.header[2:7] {
			row = append(row, typical(c.Values(v)))
		}
		best := c.Best(ours)
		cmp := c.compare(ours, best)
		t.rows = append(t.rows, append(row, typical(c.Values(ours)), best, cmp.median(),
			cmp.quartiles()))
	}
	return t
}

// Ratio is a variant by another one, one for each round that counts.
func (c *Case) Ratio(variant, peer string) ratio.Spread { return c.compare(variant, peer).Ratio }

// RTT is where the 50th, 90th, 99th and 99.9th percentiles of a variant lie, in nanoseconds.
func (c *Case) RTT(variant string) (list []ratio.Spread) {
	for _, of := range []func(*worker.RTT) int64{
		func(r *worker.RTT) int64 { return r.P50 },
		func(r *worker.RTT) int64 { return r.P90 },
		func(r *worker.RTT) int64 { return r.P99 },
		func(r *worker.RTT) int64 { return r.P999 },
	} {
		list = append(list, c.spread(variant, func(r *Row) (float64, bool) {
			if len(r.Workers) == 0 || r.Workers[0].RTT == nil || r.Workers[0].RTT.Samples == 0 {
				return 0, false
			}
			return float64(of(r.Workers[0].RTT)), true
		}))
	}
	return list
}
