package msgtrial

import (
	"context"
	"fmt"
	"math/rand/v2"

	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
)

// Bounds of a run: no seed needs nearly as much.
const (
	maxSteps = 300_000
	maxQuiet = 30 * roce.Second // of virtual time
)

// A tamper is how tests make the checks fail. All may be nil.
type tamper struct {
	received func(w *world, r *receive)     // before a receive that came back is judged
	sent     func(w *world, m *message)     // before a message that came back is
	posted   func(w *world, m *message)     // after it was posted
	heard    func(w *world, control []byte) // before the machine is told of a control message
}

// A world is a run.
type world struct {
	ctx      context.Context
	config   Config
	rng      *rand.Rand // of the applications
	clock    *sim.VirtualClock
	network  *sim.Network
	nodes    []*node
	pairs    []*pair
	messages []*message // all of them
	posts    uint64     // messages and receives that were posted
	changes  uint64     // of the model, from 1
	looked   uint64     // changes that through has seen
	doneAt   roce.Time  // when through saw first that all is done, 0 for not yet
	schedule campaign.Schedule[Havoc]
	quiet    bool
	quietAt  roce.Time
	ending   bool // nobody connects any more
	steps    int

	tamper tamper
	campaign.Trace
	stats     Stats
	violation *Violation
}

// newWorld makes everything that a seed needs.
func newWorld(ctx context.Context, c *Config, o *Options, t tamper) *world {
	w := &world{
		ctx: ctx, config: *c, rng: rand.New(rand.NewPCG(c.Seed, 0x61707073)),
		clock:    &sim.VirtualClock{},
		schedule: campaign.Schedule[Havoc]{Chaos: c.Chaos}, changes: 1, tamper: t,
	}
	w.clock.AdvanceTo(1)
	w.Trace.Log = o.Log
	var err error
	w.network, err = sim.NewNetwork(c.Seed, w.clock, c.Faults)
	w.must(err)
	w.network.Observe(w.frame)
	for i := range w.config.Nodes {
		n := &node{w: w, index: i, config: &w.config.Nodes[i]}
		w.nodes = append(w.nodes, n)
		n.open()
	}
	for i := range w.config.Pairs {
		k := &w.config.Pairs[i]
		w.pairs = append(w.pairs, &pair{w: w, index: i, config: k, todo: k.Messages})
	}
	return w
}

// fail notes the first violation; the run ends with it.
func (w *world) fail(i Invariant, format string, args ...any) {
	if w.violation == nil {
		w.violation = &Violation{
			Invariant: i, At: w.clock.Now(), What: fmt.Sprintf(format, args...),
		}
		w.say("VIOLATION: %s", w.violation)
	}
}

// upTo draws a time that is shorter than d, which is not 0.
func (w *world) upTo(d roce.Time) roce.Time { return roce.Time(w.rng.Int64N(int64(d))) }

// must ends the run when the harness itself is at fault.
func (w *world) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("msgtrial: %v", err))
	}
}

// run does all of a run: the phase with faults, the quiet one, the checks at the end.
func (w *world) run() {
	w.until(func() bool { return w.quiet })
	w.until(w.through)
	w.hangUp()
	w.until(w.over)
	w.finish()
}

// until goes on until it is done, or something is wrong.
func (w *world) until(done func() bool) {
	for w.violation == nil {
		if w.steps++; w.steps > maxSteps || w.quiet && w.clock.Now() > w.quietAt+maxQuiet {
			w.fail(Liveness, "the run does not end: %s", w.unfinished())
			return
		}
		w.schedule.Apply(w.clock.Now(), w.quiet, w.happen)
		if w.round() {
			continue
		}
		if done() {
			return
		}
		if !w.advance() {
			if !w.quiet {
				w.calm()
				continue
			}
			w.fail(Liveness, "nothing is left to happen: %s", w.unfinished())
		}
	}
}

// round gives every node a turn, and reports whether any had anything to do.
func (w *world) round() bool {
	worked := false
	first := w.rng.IntN(len(w.nodes))
	for i := range w.nodes {
		worked = w.nodes[(first+i)%len(w.nodes)].turn() || worked
		if w.violation != nil {
			return false
		}
	}
	for _, p := range w.pairs {
		worked = p.tend() || worked
	}
	return worked
}

// tend makes the connection of a pair when there is none and both hosts are there.
func (p *pair) tend() bool {
	for side, e := range p.ends {
		if e != nil && !e.over || !p.w.nodes[p.config.Nodes[side]].running() {
			return false
		}
	}
	if p.w.ending || p.todo == [2]int{} {
		return false
	}
	p.connect()
	return true
}

// advance moves the clock to the next thing that happens, and reports whether there is any.
func (w *world) advance() bool {
	now := w.clock.Now()
	next, any := roce.Time(0), false
	at := func(t roce.Time) {
		if t > now && (!any || t < next) {
			next, any = t, true
		}
	}
	for _, n := range w.nodes {
		if n.running() {
			n.nextTime(at)
		}
	}
	w.schedule.Times(w.quiet, at)
	if !w.quiet {
		at(w.config.Phase)
	}
	if !any {
		return false
	}
	w.clock.AdvanceTo(next)
	if !w.quiet && next >= w.config.Phase {
		w.calm()
	}
	return true
}
