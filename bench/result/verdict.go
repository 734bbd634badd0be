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

// A Comparison is ours against one peer.
type Comparison struct {
	Case, Peer string
	Ratio      ratio.Spread // ours divided by the peer's, one for each round that counts
	Ours       ratio.Spread // in the unit of the case, of the same rounds
	Peers      ratio.Spread
	Void       int // rounds that do not count
}

// Compare pairs our rows with each peer's, round by round.
func (c *Case) Compare() []Comparison {
	if len(c.Variants) == 0 {
		return nil
	}
	rows := map[string]map[int]Row{}
	rounds := 0
	for _, r := range c.Rows {
		if rows[r.Variant] == nil {
			rows[r.Variant] = map[int]Row{}
		}
		rows[r.Variant][r.Round] = r
		rounds = max(rounds, r.Round+1)
	}
	var list []Comparison
	for _, peer := range c.Variants[1:] {
		cmp := Comparison{Case: c.Name, Peer: peer}
		var ratios, ours, peers []float64
		for round := range rounds {
			a, b := rows[c.Variants[0]][round], rows[peer][round]
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
		list = append(list, cmp)
	}
	return list
}
