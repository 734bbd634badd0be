package trial

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
	// Shrink takes the MTU of the way from A to B down.
	Shrink
	// Restart closes the device of node A and opens it anew.
	Restart
	// Freeze stops node A: neither its engine nor its application runs.
	Freeze
	// Deregister takes away memory of end B of connection A.
	Deregister
	// ModifyErr moves the queue pair of end B of connection A to ERR.
	ModifyErr
	// Destroy closes that queue pair without telling the peer.
	Destroy
	// Starve is one of many times that node A, or every node, is not scheduled: it
	// stops as with Freeze, and what arrives meanwhile waits in its queue.
	Starve

	numHavocs
)

var havocNames = [numHavocs]string{
	"partition", "shrink", "restart", "freeze", "deregister", "modify to ERR", "destroy",
	"starve",
}

// String returns what it is called.
func (h Havoc) String() string { return havocNames[h] }

// Chaos is one such event.
type Chaos = campaign.Chaos[Havoc]

func deriveChaos(r *rand.Rand, c *Config) []Chaos {
	var list []Chaos
	for range choose(r, 0, 0, 1, 2, 4) {
		e := Chaos{
			At: roce.Time(r.Int64N(int64(c.Phase))), What: Havoc(r.IntN(int(Starve))),
			For: c.Phase / choose[roce.Time](r, 2, 5, 20),
		}
		switch e.What {
		case Partition, Shrink:
			e.A = r.IntN(len(c.Nodes))
			e.B = (e.A + 1 + r.IntN(len(c.Nodes)-1)) % len(c.Nodes)
		case Restart, Freeze:
			e.A = r.IntN(len(c.Nodes))
		default:
			e.A, e.B = r.IntN(len(c.Conns)), r.IntN(2)
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
	until := e.At + e.For
	switch e.What {
	case Partition:
		w.change(e.A, e.B, until, func(f *sim.Faults) { f.Blocked = true })
	case Shrink:
		w.change(e.A, e.B, until, func(f *sim.Faults) { f.MTU = 600 })
	case Restart:
		n := w.nodes[e.A]
		if n.up {
			n.crash()
			w.schedule.Later(until, n.open)
		}
	case Freeze, Starve:
		n := w.nodes[e.A]
		n.frozen++
		w.schedule.Later(until, func() {
			n.frozen--
			n.thawedAt = w.clock.Now()
		})
	case Deregister:
		w.conns[e.A].ends[e.B].deregister()
	case ModifyErr:
		w.conns[e.A].ends[e.B].force("chaos")
	case Destroy:
		w.conns[e.A].ends[e.B].destroy()
	}
}

// change changes one direction for a time.
func (w *world) change(from, to int, until roce.Time, how func(*sim.Faults)) {
	a, b := campaign.MAC(from, 0), campaign.MAC(to, 0)
	f := w.config.way(from, to)
	w.schedule.Later(until, func() {
		if !w.quiet {
			w.must(w.network.SetDirection(a, b, f))
		}
	})
	how(&f)
	w.must(w.network.SetDirection(a, b, f))
}

// way returns the faults of a direction.
func (c *Config) way(from, to int) sim.Faults {
	for _, w := range c.Ways {
		if w.From == from && w.To == to {
			return w.Faults
		}
	}
	return c.Faults
}
