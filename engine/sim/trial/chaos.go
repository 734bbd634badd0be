package trial

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"xroce/engine/sim"
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
type Chaos struct {
	At, For roce.Time
	What    Havoc
	A, B    int
}

// String says what happens when.
func (c Chaos) String() string {
	return fmt.Sprintf("%s %d %d at %s for %s", c.What, c.A, c.B, clockTime(c.At),
		clockTime(c.For))
}

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
	sortChaos(list)
	return list
}

func sortChaos(list []Chaos) {
	slices.SortStableFunc(list, func(a, b Chaos) int { return int(a.At - b.At) })
}

// An undo ends an event of chaos.
type undo struct {
	at roce.Time
	do func()
}

// applyChaos begins the events of chaos that are due, and ends those that are over.
func (w *world) applyChaos() {
	now := w.clock.Now()
	w.undos = slices.DeleteFunc(w.undos, func(u undo) bool {
		if u.at > now && !w.quiet {
			return false
		}
		u.do()
		return true
	})
	for len(w.chaos) > 0 && !w.quiet && w.chaos[0].At <= now {
		e := w.chaos[0]
		w.chaos = w.chaos[1:]
		w.say("chaos: %s", e)
		w.stats.Chaos[e.What]++
		w.happen(e)
	}
}

// happen makes one event of chaos.
func (w *world) happen(e Chaos) {
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
			w.undos = append(w.undos, undo{until, n.open})
		}
	case Freeze, Starve:
		n := w.nodes[e.A]
		n.frozen++
		w.undos = append(w.undos, undo{until, func() {
			n.frozen--
			n.thawedAt = w.clock.Now()
		}})
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
	a, b := macOf(from), macOf(to)
	f := w.config.way(from, to)
	w.undos = append(w.undos, undo{until, func() {
		if !w.quiet {
			w.must(w.network.SetDirection(a, b, f))
		}
	}})
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
