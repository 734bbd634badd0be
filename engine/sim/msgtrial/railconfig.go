package msgtrial

import (
	"math/rand/v2"

	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/roce/msg"
)

// adapters is how many adapters a node has.
func (n *NodeConfig) adapters() int { return max(1, n.Machine.Rails) }

// deriveRails gives the nodes of a third of the seeds several adapters, whose wires are cut and
// heal, whose queue pairs break, and which are taken away. It draws from a source of its own.
func deriveRails(c *Config) {
	r := rand.New(rand.NewPCG(c.Seed, 0x7261696c))
	if !one(r, 3) {
		return
	}
	c.Phase = max(c.Phase, choose[roce.Time](r, 2000, 10_000)*roce.Microsecond)
	for i := range c.Nodes {
		m := &c.Nodes[i].Machine
		m.Rails = choose(r, 2, 2, 3, 1)
		if i < 2 {
			m.Rails = max(m.Rails, 2)
		}
		if m.Rails > 1 {
			railsOf(r, m)
		}
	}
	for i := range c.Pairs {
		c.Pairs[i].Messages[0] = max(c.Pairs[i].Messages[0], 1)
	}
	for range choose(r, 1, 4, 8, 16) {
		e := Chaos{
			At:   roce.Time(r.Int64N(int64(c.Phase))),
			What: choose(r, Cut, Cut, Cut, Sever, Sever, Unplug),
			For:  c.Phase / choose[roce.Time](r, 2, 5, 20),
			A:    r.IntN(len(c.Nodes)),
		}
		cut := choose(r, Cut, Cut, CutTx, CutRx)
		e.B = r.IntN(c.Nodes[e.A].adapters())
		switch e.What {
		case Cut:
			e.What = cut
		case Sever:
			e.A, e.B = r.IntN(len(c.Pairs)), r.IntN(2)
		}
		c.Chaos = append(c.Chaos, e)
	}
	campaign.Sort(c.Chaos)
}

// railsOf says how an endpoint of several adapters is: it must notice when one is gone.
func railsOf(r *rand.Rand, m *msg.Config) {
	m.Keepalive = choose[roce.Time](r, 1000, 200) * roce.Microsecond
	m.Grace = choose[roce.Time](r, 0, 500, 20_000) * roce.Microsecond
}
