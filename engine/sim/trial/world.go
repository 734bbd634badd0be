package trial

import (
	"context"
	"fmt"
	"math/rand/v2"

	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/roce/wire"
)

// maxSteps bounds a run: no seed needs nearly as many.
const maxSteps = 4_000_000

// A tamper is how tests make the checks fail. All may be nil.
type tamper struct {
	// completions stands between a CQ and the model.
	completions func(w *world, wcs []roce.Completion) []roce.Completion
	// after is called after each event.
	after func(w *world)
	// faults changes the faults that the seed chose.
	config func(c *Config)
}

// A world is a run.
type world struct {
	ctx       context.Context
	config    Config
	roundTrip roce.Time
	rng       *rand.Rand // of the applications
	clock     *sim.VirtualClock
	network   *sim.Network
	nodes     []*node
	conns     []*conn
	schedule  campaign.Schedule[Havoc]
	quiet     bool
	steps     int

	tamper      tamper
	completions [64]roce.Completion
	campaign.Trace
	stats     Stats
	violation *Violation
}

// newWorld makes everything that a seed needs.
func newWorld(ctx context.Context, c *Config, o *Options, t tamper) *world {
	w := &world{
		ctx: ctx, config: *c, roundTrip: c.roundTrip(),
		rng:      rand.New(rand.NewPCG(c.Seed, 0x61707073)),
		clock:    &sim.VirtualClock{},
		schedule: campaign.Schedule[Havoc]{Chaos: c.Chaos}, tamper: t,
	}
	w.Trace.Log = o.Log
	var err error
	w.network, err = sim.NewNetwork(c.Seed, w.clock, c.Faults)
	w.must(err)
	for _, way := range c.Ways {
		from, to := campaign.MAC(way.From, 0), campaign.MAC(way.To, 0)
		w.must(w.network.SetDirection(from, to, way.Faults))
	}
	w.network.Observe(w.frame)
	for i := range w.config.Nodes {
		n := &node{w: w, index: i, config: &w.config.Nodes[i]}
		w.nodes = append(w.nodes, n)
		n.open()
	}
	for i := range w.config.Conns {
		w.conns = append(w.conns, newConn(w, i, &w.config.Conns[i]))
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

// say takes an event as text, which is made at once: what it tells of may change.
func (w *world) say(format string, args ...any) {
	w.Note(w.clock.Now(), "%s", fmt.Sprintf(format, args...))
}

// must ends the run when the harness itself is at fault.
func (w *world) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("trial: %v", err))
	}
}

// run does all of a run: the phase with faults, the quiet one, the checks at the end.
func (w *world) run() {
	for w.violation == nil {
		if w.steps++; w.steps > maxSteps {
			w.fail(Liveness, "the run does not end")
			return
		}
		w.schedule.Apply(w.clock.Now(), w.quiet, w.happen)
		if w.round() {
			continue
		}
		switch {
		case w.through() && !w.quiet:
			w.calm()
			continue
		case w.through():
			w.finish()
			return
		}
		if !w.advance() && !w.redraw() {
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
		if w.tamper.after != nil {
			w.tamper.after(w)
		}
		if w.violation != nil {
			return true
		}
	}
	for _, c := range w.conns {
		worked = c.tend() || worked
	}
	return worked
}

// redraw has an endpoint with something to post, and nothing outstanding, draw again: what
// was drawn last may have needed a key that the peer was about to make, and nothing more
// happens by itself. It reports whether a request was posted.
func (w *world) redraw() bool {
	const draws = 100
	for _, c := range w.conns {
		for _, e := range c.ends {
			if c.breaking || e.dead || e.qp == nil || e.todo == 0 || len(e.sends) > 0 {
				continue
			}
			for range draws {
				if e.postSend() {
					return true
				}
			}
		}
	}
	return false
}

// through reports whether all work is done.
func (w *world) through() bool {
	for _, c := range w.conns {
		if !c.finished() {
			return false
		}
	}
	return true
}

// unfinished says what is not done.
func (w *world) unfinished() string {
	s := ""
	for _, c := range w.conns {
		for _, e := range c.ends {
			if c.finished() {
				continue
			}
			s += fmt.Sprintf("%s: %d to post, %d outstanding, %d to arrive, breaking %t, %s; ",
				e, e.todo, len(e.sends), len(e.expect), c.breaking, e.before)
		}
	}
	return s
}

// advance moves the clock to the next thing that happens, and reports whether
// there is any.
func (w *world) advance() bool {
	now := w.clock.Now()
	next, any := roce.Time(0), false
	at := func(t roce.Time) {
		if t > now && (!any || t < next) {
			next, any = t, true
		}
	}
	for _, n := range w.nodes {
		if !n.running() {
			continue
		}
		if t, ok := n.port.NextArrival(); ok {
			at(t)
		}
		if t, ok := n.device.NextDeadline(); ok {
			at(t)
		}
		if n.lookAt > now && !w.quiet {
			at(n.lookAt)
		}
	}
	w.schedule.Times(w.quiet, at)
	if !w.quiet {
		for _, c := range w.conns {
			for _, e := range c.ends {
				if e.todo > 0 {
					at(e.nextPost)
				}
			}
		}
		at(w.config.Phase)
	}
	if !any {
		return false
	}
	for _, c := range w.conns {
		for _, e := range c.ends {
			if e.node.running() {
				e.checkAlive(next)
			}
		}
	}
	w.clock.AdvanceTo(next)
	if !w.quiet && next >= w.config.Phase {
		w.calm()
	}
	return true
}

// quietMessages is how many messages each end sends in the quiet phase at least.
const quietMessages = 3

// calm begins the quiet phase: no faults, no chaos, no slow applications.
func (w *world) calm() {
	w.quiet = true
	w.say("quiet: the faults end")
	w.must(w.network.SetFaults(sim.Faults{Delay: w.config.Faults.Delay}))
	for _, c := range w.conns {
		for _, e := range c.ends {
			e.nextPost = 0
			if !e.receives() {
				e.todo += quietMessages
			}
		}
	}
}

// frame takes what happened to a frame: into the trace, and as harm to the
// connection that it belongs to.
func (w *world) frame(ev *sim.Event) {
	f := campaign.ReadFrame(ev)
	w.Frame(&f)
	w.stats.Network[ev.Kind]++
	made := ev.Kind == sim.Sent || ev.Kind == sim.Duplicated || ev.Kind == sim.Staled
	if made && f.Acknowledges() && f.Syndrome.IsRNRNAK() {
		w.rnr(&f)
	}
	if ev.Kind == sim.Sent && f.From >= 0 && f.From < len(w.nodes) {
		for _, e := range w.nodes[f.From].endpoints {
			if e.peer.info.QPN == f.DestQP {
				e.pace(&f)
			}
		}
	}
	// A copy may be answered, and its answer be taken for that of another.
	if !ev.Kind.Fault() || f.To >= len(w.nodes) || f.To < 0 {
		return
	}
	for _, e := range w.nodes[f.To].endpoints {
		if e.unreliable() {
			// Of any connection: the number may be what was damaged.
			e.harmIn++
			if ev.Kind == sim.Reordered || ev.Kind == sim.Held {
				e.movedIn++
			}
			e.shuffled = e.shuffled || shuffles[ev.Kind]
		}
		if e.info.QPN == f.DestQP {
			e.harm++
			e.peer.harm++
		}
	}
}

// rnr notes who sent an RNR NAK, or of whom the network made a copy.
func (w *world) rnr(f *campaign.Frame) {
	for _, e := range w.nodes[f.From].endpoints {
		if e.peer.info.QPN == f.DestQP {
			e.notReady++
			e.notReadyAt = f.At
		}
	}
}

// rnrTime is how long an RNR NAK with a timer code makes its receiver wait.
func rnrTime(code uint8) roce.Time { return roce.Time(wire.RNRTimerNanos(code)) }
