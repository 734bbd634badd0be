package trial

import (
	"context"
	"fmt"
	"io"

	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
)

// Options say how to run a seed.
type Options struct {
	Log   io.Writer // gets the configuration and every event, may be nil
	Plain bool      // only what derivePlain draws
	Wide  bool      // only what widen draws beside
	Lent  bool      // only what widen and lend draw beside
}

// Stats are what happened in a run, or in several.
type Stats struct {
	Connections uint64 // made
	Messages    uint64 // completed with success
	Arrivals    uint64 // of these and others, at receives
	Bytes       uint64 // of the messages
	Retransmits uint64
	Virtual     roce.Time // time simulated
	Network     [sim.NumKinds]uint64
	Chaos       [numHavocs]uint64
	Errors      [32]uint64     // completions by roce.Status
	Lost        uint64         // messages of connections of type UC
	Ops         [numOps]uint64 // requests completed with success, by operation
	Events      [32]uint64     // of devices, by roce.Event
}

// Add adds what happened in other runs.
func (s *Stats) Add(o *Stats) {
	s.Connections += o.Connections
	s.Messages += o.Messages
	s.Arrivals += o.Arrivals
	s.Bytes += o.Bytes
	s.Retransmits += o.Retransmits
	s.Virtual += o.Virtual
	for i, n := range o.Network {
		s.Network[i] += n
	}
	for i, n := range o.Chaos {
		s.Chaos[i] += n
	}
	s.Lost += o.Lost
	for i, n := range o.Ops {
		s.Ops[i] += n
	}
	for i, n := range o.Events {
		s.Events[i] += n
	}
	for i, n := range o.Errors {
		s.Errors[i] += n
	}
}

// Run runs one seed. It is safe for concurrent use; a run itself is one thread.
func Run(ctx context.Context, seed uint64, o Options) *Result {
	c := derive(seed)
	switch {
	case o.Plain:
		c = derivePlain(seed)
	case o.Wide:
		c = deriveWide(seed)
	case o.Lent:
		c = deriveLent(seed)
	}
	return runConfig(ctx, &c, &o, tamper{})
}

// runConfig runs a configuration. A panic ends it as a violation.
func runConfig(ctx context.Context, c *Config, o *Options, t tamper) *Result {
	if t.config != nil {
		t.config(c)
	}
	r := &Result{
		Seed: c.Seed, Config: c.String(),
		Replay: fmt.Sprintf("xroce sim --seeds %d --verbose", c.Seed),
	}
	if o.Log != nil {
		fmt.Fprint(o.Log, r.Config)
	}
	var w *world
	r.Violation = campaign.Protect(Panic, func() {
		w = newWorld(ctx, c, o, t)
		w.run()
	})
	if w != nil {
		r.Hash, r.Stats = w.Hash(), w.stats
		r.Stats.Virtual = w.clock.Now()
		if r.Violation == nil {
			r.Violation = w.violation
		}
		if r.Violation != nil {
			r.Last = w.Last()
		}
	}
	return r
}
