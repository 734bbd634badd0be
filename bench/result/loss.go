package result

import (
	"fmt"
	"strings"

	"xroce/bench/ratio"
	"xroce/bench/worker"
	"xroce/roce/counter"
)

// lossPrefix begins the names of the cases over lossy links.
const lossPrefix = "loss-"

// Ideal shares of the lossless goodput at a loss of p per packet.

// idealGoBackN is that of a sender which is never idle and sends n packets again
// for each one lost.
func idealGoBackN(p, n float64) float64 { return (1 - p) / (1 + p*(n-1)) }

// idealSelective is that of a sender which sends again only what was lost.
func idealSelective(p float64) float64 { return 1 - p }

// resent is how many packets a row's sender sent again for each loss that mattered, at a loss
// of p per packet. Of those that were to be delivered p/(1-p) were lost on the way, again and
// again if need be. What is lost behind a gap is thrown away in any case, so it does not count:
// TestIdealOfAModel.
func resent(r *Row, p float64) (float64, bool) {
	if len(r.Workers) == 0 {
		return 0, false
	}
	count := r.Workers[0].Counters
	sent, again := count[counter.SentPkts.String()], count[counter.Retransmits.String()]
	if p <= 0 || sent <= again {
		return 0, false
	}
	return float64(again) * (1 - p) / (p * float64(sent-again)), true
}

// timedOut is how many local ACK timeouts there were for each packet that a row's
// sender lost.
func timedOut(r *Row) (float64, bool) {
	if len(r.Workers) == 0 {
		return 0, false
	}
	count := r.Workers[0].Counters
	dropped := count[worker.DroppedOnPurpose]
	if dropped == 0 {
		return 0, false
	}
	return float64(count[counter.LocalAckTimeout.String()]) / float64(dropped), true
}

// shareOfIdeal is a variant's share of the lossless goodput divided by the ideal
// of go-back-N, with the n of the same row.
func (c *Case) shareOfIdeal(variant string, p float64) ratio.Spread {
	lossless := c.byRound(c.Reference)
	return c.spread(variant, func(r *Row) (float64, bool) {
		n, ok := resent(r, p)
		base := lossless[r.Round]
		if !ok || base.Void != "" || base.Value <= 0 || r.Value <= 0 {
			return 0, false
		}
		return r.Value / base.Value / idealGoBackN(p, n), true
	})
}

// lossTable has the goodput over lossy links beside what would be ideal.
func (d *Document) lossTable() table {
	t := table{
		title: "Goodput over a lossy link",
		header: []string{
			"case", "loss", "bit/s", "of lossless", "quartiles", "N", "timeouts", "ideal go-back-N",
			"of that", "ideal selective",
		},
		notes: []string{"N: packets sent again for each one lost, without those lost behind a " +
			"gap, where the receiver throws all away; timeouts: for each one lost. Both of " +
			"the same run."},
	}
	for i := range d.Cases {
		c := &d.Cases[i]
		if !strings.HasPrefix(c.Name, lossPrefix) {
			continue
		}
		for _, variant := range c.Variants {
			ppm, _ := c.point(variant)
			p := ppm / 1e6
			share := c.compare(variant, c.Reference).Ratio
			n := c.spread(variant, func(r *Row) (float64, bool) { return resent(r, p) })
			ideal := "–"
			if n.N > 0 {
				ideal = fmt.Sprintf("%.2f", idealGoBackN(p, n.Median))
			}
			t.rows = append(t.rows, []string{
				c.Name, variant, typical(c.spread(variant, value)), perhaps(share, "%.2f"),
				within(share, "%.2f"), perhaps(n, "%.1f"),
				perhaps(c.spread(variant, timedOut), "%.3f"), ideal,
				perhaps(c.shareOfIdeal(variant, p), "%.2f"),
				fmt.Sprintf("%.3f", idealSelective(p)),
			})
		}
	}
	return t
}
