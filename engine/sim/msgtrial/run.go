package msgtrial

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
	Plain bool      // two nodes, and nothing goes wrong
}

// Stats are what happened in a run, or in several.
type Stats struct {
	Connections uint64 // made
	Rails       uint64 // made, of these
	RailsLost   uint64 // of connections of several
	Resumed     uint64 // changes of the rail of what goes in order
	SentAgain   uint64 // frames and control messages, by another rail
	ChunksAgain uint64 // parts of long messages
	Ended       uint64 // ends of connections that ended, as their machine said
	Messages    uint64 // sent with success
	Failed      uint64 // that ended with an error
	Received    uint64
	Bytes       uint64 // of the messages sent with success
	Refused     uint64 // requests for memory
	NotReady    uint64 // RNR NAKs
	Virtual     roce.Time
	Network     [sim.NumKinds]uint64
	Chaos       [numHavocs]uint64
	Protocols   [8]uint64  // messages sent with success, by msg.Protocol
	Reasons     [32]uint64 // by msg.Reason
}

// Add adds what happened in other runs.
func (s *Stats) Add(o *Stats) {
	for _, f := range []struct{ to, from *uint64 }{
		{&s.Connections, &o.Connections},
		{&s.Rails, &o.Rails},
		{&s.RailsLost, &o.RailsLost},
		{&s.Resumed, &o.Resumed},
		{&s.SentAgain, &o.SentAgain},
		{&s.ChunksAgain, &o.ChunksAgain},
		{&s.Ended, &o.Ended},
		{&s.Messages, &o.Messages},
		{&s.Failed, &o.Failed},
		{&s.Received, &o.Received},
		{&s.Bytes, &o.Bytes},
		{&s.Refused, &o.Refused},
		{&s.NotReady, &o.NotReady},
	} {
		*f.to += *f.from
	}
	s.Virtual += o.Virtual
	for _, f := range []struct{ to, from []uint64 }{
		{s.Network[:], o.Network[:]},
		{s.Chaos[:], o.Chaos[:]},
		{s.Protocols[:], o.Protocols[:]},
		{s.Reasons[:], o.Reasons[:]},
	} {
		for i, n := range f.from {
			f.to[i] += n
		}
	}
}

// Run runs one seed. It is safe for concurrent use; a run itself is one goroutine.
func Run(ctx context.Context, seed uint64, o Options) *Result {
	c := derive(seed, o.Plain)
	return runConfig(ctx, &c, &o, tamper{})
}

// runConfig runs a configuration. A panic ends it as a violation.
func runConfig(ctx context.Context, c *Config, o *Options, t tamper) *Result {
	r := &Result{
		Seed: c.Seed, Config: c.String(),
		Replay: fmt.Sprintf("xroce sim --messages --seeds %d --verbose", c.Seed),
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
