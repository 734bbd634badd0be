package trial

import (
	"math/rand/v2"

	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
)

// widen draws what derive does not: it came later, and has a generator of its
// own, so that the seeds of earlier campaigns still mean the same draws there.
// A quarter of the seeds get nothing of it.
func (c *Config) widen() {
	r := rand.New(rand.NewPCG(c.Seed, 0x77696465))
	if one(r, 4) {
		return
	}
	for i := range c.Nodes {
		c.Nodes[i].widen(r)
	}
	unreliable := false
	for i := range c.Conns {
		k := &c.Conns[i]
		k.widen(r, c)
		unreliable = unreliable || k.Type == roce.TypeUC
	}
	switch {
	case unreliable && !one(r, 4):
		// Nothing but losses: without copies there are more promises to hold.
		c.change(func(f *sim.Faults) { f.Dup, f.Stale, f.Reorder, f.Hold = 0, 0, 0, 0 })
	case one(r, 4):
		// Paths of different lengths: most of what arrives late is not lost.
		share, late := choose(r, 0.05, 0.3), choose[roce.Time](r, 2, 10, 40)*roce.Microsecond
		c.change(func(f *sim.Faults) { f.Reorder, f.ReorderBy = share, late })
	}
	if k := &c.Conns[0]; one(r, 8) && k.Type == roce.TypeRC {
		k.extended()
	}
}

// lend draws which connections lend memory windows for tickets. It came later still,
// and has a generator of its own.
func (c *Config) lend() {
	r := rand.New(rand.NewPCG(c.Seed, 0x6c656e64))
	if one(r, 3) {
		return
	}
	for i := range c.Conns {
		k := &c.Conns[i]
		if k.Type != roce.TypeRC || one(r, 4) {
			continue
		}
		k.Lends = true
		k.weigh("WRITE_TICKET", choose(r, 1, 2, 4))
		k.weigh("SEND_INV", choose(r, 0, 0, 1))
		if one(r, 3) {
			k.Bad = max(k.Bad, 0.1)
		}
	}
}

// starve draws hosts that are not scheduled for a while, again and again, one of them
// or all at once, as where they share a machine that has too much to do. It came last,
// and has a generator of its own.
func (c *Config) starve() {
	r := rand.New(rand.NewPCG(c.Seed, 0x73746172))
	if !one(r, 3) {
		return
	}
	longest := int64(c.Phase / choose[roce.Time](r, 4, 20, 100))
	all, at := one(r, 3), roce.Time(r.Int64N(longest))
	for range choose(r, 2, 8, 32) {
		away := roce.Time(1 + r.Int64N(longest))
		first, last := 0, len(c.Nodes)-1
		if !all {
			first = r.IntN(len(c.Nodes))
			last = first
		}
		for node := first; node <= last; node++ {
			c.Chaos = append(c.Chaos, Chaos{At: at, For: away, What: Starve, A: node})
		}
		if at += away + roce.Time(r.Int64N(longest)); at >= c.Phase {
			break
		}
	}
	campaign.Sort(c.Chaos)
}

// weigh makes an operation at least so likely.
func (k *ConnConfig) weigh(name string, weight int) {
	for i := range operations {
		if operations[i].name == name {
			k.Weights[i] = max(k.Weights[i], weight)
		}
	}
}

// change changes the faults of every direction.
func (c *Config) change(how func(*sim.Faults)) {
	how(&c.Faults)
	for i := range c.Ways {
		how(&c.Ways[i].Faults)
	}
}

func (n *NodeConfig) widen(r *rand.Rand) {
	n.Words = choose(r, 1, 2, 4)
	if one(r, 2) {
		n.SRQDepth = choose(r, 1, 3, 8, 32)
		n.SRQLimit = one(r, 2)
	}
	n.Resize = one(r, 4)
}

func (k *ConnConfig) widen(r *rand.Rand, c *Config) {
	for i := range k.SRQ {
		k.SRQ[i] = c.Nodes[k.Nodes[i]].SRQDepth > 0 && one(r, 2)
	}
	k.MaxInline = choose(r, 0, 0, 1, 64, 256)
	if one(r, 6) {
		k.RateLimit = choose[uint32](r, 50_000, 400_000, 3_000_000, 20_000_000)
	}
	if one(r, 6) {
		k.unreliable()
		return
	}
	for i := range k.Extensions {
		k.Extensions[i] = choose(r, 0, roce.ExtSelectiveRepeat, roce.ExtReorderWindow,
			bothExtensions, bothExtensions)
	}
	if one(r, 2) {
		k.Extensions[1] = k.Extensions[0]
	}
	for i := range k.Extensions {
		if one(r, 2) {
			k.Extensions[i] |= roce.ExtPiggybackAck
		}
	}
	for i := numPlainOps; i < numWideOps; i++ {
		k.Weights[i] = choose(r, 0, 0, 1, 2)
	}
	if k.uses("SEND_INV") && one(r, 3) {
		k.Bad = 0.1
	}
}

// extended makes it an XRC: one end sends, and the other one receives, from an
// SRQ that the requests name.
func (k *ConnConfig) extended() {
	k.Type, k.Extensions, k.SRQ = roce.TypeXRCSend, [2]roce.Extensions{}, [2]bool{}
	total := 0
	for i := range k.Weights {
		if operations[i].onlyRC {
			k.Weights[i] = 0
		}
		total += k.Weights[i]
	}
	if total == 0 {
		k.Weights[0] = 1
	}
}

// bothExtensions is all that two QPs may agree on.
const bothExtensions = roce.ExtSelectiveRepeat | roce.ExtReorderWindow

// unreliable makes it a connection of type UC, with what that can do.
func (k *ConnConfig) unreliable() {
	k.Type, k.Bad, k.SmallRq = roce.TypeUC, 0, 0
	total := 0
	for i := range k.Weights {
		if !operations[i].unreliable {
			k.Weights[i] = 0
		}
		total += k.Weights[i]
	}
	if total == 0 {
		k.Weights[0] = 1
	}
}
