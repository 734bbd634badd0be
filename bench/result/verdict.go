package result

import (
	"fmt"

	"xroce/bench/ratio"
)

// Limits beyond which a row does not count.
const (
	maxLoss  = 0.0001 // of the packets, where nothing should be lost
	maxMoved = 0.30   // of the control's median
)

// Judge voids rows: those that lost packets where the settings promise that none
// is lost, and all rows of a round in which the control moved, since then the
// machine did, and what else was measured in that round says nothing.
func (c *Case) Judge() {
	var control []float64
	for i := range c.Rows {
		r := &c.Rows[i]
		if c.Lossless && r.Void == "" && r.Loss > maxLoss {
			r.Void = fmt.Sprintf("lost %.3g %%", 100*r.Loss)
		}
		if r.Variant == c.Control && r.Value > 0 {
			control = append(control, r.Value)
		}
	}
	moved := map[int]float64{}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Variant == c.Control && r.Value > 0 {
			moved[r.Round] = ratio.Moved(r.Value, control)
		}
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Void == "" && moved[r.Round] > maxMoved {
			r.Void = fmt.Sprintf("the control moved %.0f %%", 100*moved[r.Round])
		}
	}
}

// A Comparison is one variant against another. Against a peer the variant is ours.
type Comparison struct {
	Case, Variant, Peer string
	Ratio               ratio.Spread // the variant's by the peer's, one for each round that counts
	Ours                ratio.Spread // in the unit of the case, of the same rounds
	Peers               ratio.Spread
	Void                int // rounds that do not count
}

// Compare pairs rows, round by round: ours with each peer's, or with a reference
// each variant's with that.
func (c *Case) Compare() []Comparison {
	if len(c.Variants) == 0 {
		return nil
	}
	var list []Comparison
	for _, other := range c.Variants {
		switch {
		case c.Reference == "" && other != c.Variants[0]:
			list = append(list, c.compare(c.Variants[0], other))
		case c.Reference != "" && other != c.Reference:
			list = append(list, c.compare(other, c.Reference))
		}
	}
	return list
}

// compare pairs the rows of two variants.
func (c *Case) compare(variant, peer string) Comparison {
	cmp := Comparison{Case: c.Name, Variant: variant, Peer: peer}
	mine, theirs := c.byRound(variant), c.byRound(peer)
	rounds := 0
	for _, r := range c.Rows {
		rounds = max(rounds, r.Round+1)
	}
	var ratios, ours, peers []float64
	for round := range rounds {
		a, b := mine[round], theirs[round]
		if a.Void != "" || b.Void != "" || a.Value <= 0 || b.Value <= 0 {
			cmp.Void++
			continue
		}
		ratios = append(ratios, a.Value/b.Value)
		ours = append(ours, a.Value)
		peers = append(peers, b.Value)
	}
	cmp.Ratio, cmp.Ours, cmp.Peers =
		ratio.SpreadOf(ratios), ratio.SpreadOf(ours), ratio.SpreadOf(peers)
	return cmp
}

// byRound finds the rows of a variant.
func (c *Case) byRound(variant string) map[int]Row {
	rows := map[int]Row{}
	for _, r := range c.Rows {
		if r.Variant == variant {
			rows[r.Round] = r
		}
	}
	return rows
}

// spread is where some number of a variant's rows that count lies. of returns
// false for rows that have no such number.
func (c *Case) spread(variant string, of func(*Row) (float64, bool)) ratio.Spread {
	var v []float64
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Variant != variant || r.Void != "" {
			continue
		}
		if x, ok := of(r); ok {
			v = append(v, x)
		}
	}
	return ratio.SpreadOf(v)
}

// value is what was measured.
func value(r *Row) (float64, bool) { return r.Value, r.Value > 0 }

// point is where a variant is on the case's axis.
func (c *Case) point(variant string) (float64, bool) {
	for _, p := range c.At {
		if p.Variant == variant {
			return p.At, true
		}
	}
	return 0, false
}
