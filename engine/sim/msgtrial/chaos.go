package msgtrial

import (
	"math/rand/v2"

	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
)

// A Havoc is something that goes wrong beside the frames.
type Havoc uint8

// What goes wrong.
const (
	// Partition lets nothing pass from node A to node B.
	Partition Havoc = iota
	// Restart closes the device of node A and opens it anew.
	Restart
	// Freeze stops node A: neither its engine nor its owner nor its application runs.
	Freeze
	// Deaf has the application of node A post no receives.
	Deaf
	// Abort ends one end of pair A from above.
	Abort
	// Sever moves a queue pair of one end of pair A to ERR.
	Sever
	// Cut lets nothing pass from or to adapter B of node A.
	Cut
	// CutTx lets nothing pass from it.
	CutTx
	// CutRx lets nothing pass to it.
	CutRx
	// Unplug takes adapter B of node A away until the node restarts.
	Unplug

	numHavocs
)

var havocNames = [numHavocs]string{
	"partition", "restart", "freeze", "deaf", "abort", "sever", "cut", "cut-tx", "cut-rx",
	"unplug",
}

// String returns what it is called.
func (h Havoc) String() string { return havocNames[h] }

// Chaos is one such event.
type Chaos = campaign.Chaos[Havoc]

func deriveChaos(r *rand.Rand, c *Config) []Chaos {
	var list []Chaos
	for range choose(r, 0, 0, 1, 2, 4) {
		e := Chaos{
			At: roce.Time(r.Int64N(int64(c.Phase))), What: Havoc(r.IntN(int(Sever) + 1)),
			For: c.Phase / choose[roce.Time](r, 2, 5, 20), A: r.IntN(len(c.Nodes)),
		}
		switch e.What {
		case Partition:
			e.B = (e.A + 1 + r.IntN(len(c.Nodes)-1)) % len(c.Nodes)
		case Abort, Sever:
			e.A, e.B = r.IntN(len(c.Pairs)), r.IntN(2)
		}
		list = append(list, e)
	}
	campaign.Sort(list)
	return list
}

// happen makes one event of chaos.
func (w *world) happen(e Chaos) {
	w.say("chaos: %s", e)
	w.stats.Chaos[e.What]++
	later := func(do func()) { w.schedule.Later(e.At+e.For, do) }
	switch e.What {
	case Partition:
		w.block(e.A, e.B, true)
		w.nodes[e.A].harm, w.nodes[e.B].harm = w.nodes[e.A].harm+1, w.nodes[e.B].harm+1
		later(func() { w.block(e.A, e.B, false) })
	case Restart:
		if n := w.nodes[e.A]; n.up {
			n.crash()
			later(n.open)
		}
	case Freeze:
		n := w.nodes[e.A]
		n.frozen++
		n.harm++
		later(func() { n.frozen-- })
	case Deaf:
		n := w.nodes[e.A]
		n.deaf++
		later(func() { n.deaf-- })
	case Abort:
		if end := w.pairs[e.A].ends[e.B]; end != nil && end.node.running() && end.core != nil {
			end.blame("it was aborted")
			end.core.Abort(w.clock.Now(), errAborted)
			end.node.progress()
		}
	case Sever:
		if end := w.pairs[e.A].ends[e.B]; end != nil && end.node.running() && !end.over {
			end.sever()
		}
	case Cut, CutTx, CutRx:
		w.cut(e, true)
		later(func() { w.cut(e, false) })
	case Unplug:
		if n := w.nodes[e.A]; n.running() {
			n.unplug(e.B)
		}
	}
}

// sever moves a queue pair to ERR.
func (e *end) sever() {
	var live []*rail
	for _, r := range e.rails {
		if !r.left && r.on.up {
			live = append(live, r)
		}
	}
	if len(live) == 0 {
		return
	}
	r := live[0]
	if len(live) > 1 {
		r = choose(e.pair.w.rng, live...)
	}
	r.blame("its queue pair was moved to ERR")
	r.peer.blame("the queue pair of the peer was moved to ERR")
	if !e.several {
		e.blame(r.cause)
		e.peer.blame(r.peer.cause)
	}
	e.pair.w.must(r.qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState))
}

// cut cuts the wire of an adapter, or heals it.
func (w *world) cut(c Chaos, blocked bool) {
	for _, n := range w.nodes {
		n.harm++
		if n.index == c.A {
			continue
		}
		for i := range n.config.adapters() {
			here, there := campaign.MAC(c.A, c.B), campaign.MAC(n.index, i)
			if c.What != CutRx {
				w.blockWay(here, there, blocked)
			}
			if c.What != CutTx {
				w.blockWay(there, here, blocked)
			}
		}
	}
}

// block lets nothing pass from a node to another, or lets it pass again.
func (w *world) block(from, to int, blocked bool) {
	if w.quiet {
		return
	}
	for i := range w.nodes[from].config.adapters() {
		for j := range w.nodes[to].config.adapters() {
			w.blockWay(campaign.MAC(from, i), campaign.MAC(to, j), blocked)
		}
	}
}

// blockWay lets nothing pass in one direction between two adapters, or lets it pass again.
func (w *world) blockWay(from, to [6]byte, blocked bool) {
	if w.quiet {
		return
	}
	f := w.config.Faults
	f.Blocked = blocked
	w.must(w.network.SetDirection(from, to, f))
}

// calm begins the quiet phase: no faults, no chaos, no slow applications, memory for all.
func (w *world) calm() {
	w.quiet, w.quietAt = true, w.clock.Now()
	w.changes++
	w.say("quiet: the faults end")
	w.must(w.network.SetFaults(sim.Faults{Delay: w.config.Faults.Delay}))
	for _, p := range w.pairs {
		for _, e := range p.ends {
			if e != nil {
				e.nextPost = 0
			}
		}
		p.todo[0] += quietMessages
		p.todo[1] += quietMessages
	}
}

// quietMessages is how many messages each end sends in the quiet phase at least.
const quietMessages = 2
