package msgtrial

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"xroce/engine/sim"
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
	Reasons     [16]uint64 // by msg.Reason
}

// Add adds what happened in other runs.
func (s *Stats) Add(o *Stats) {
	for _, f := range []struct{ to, from *uint64 }{
		{&s.Connections, &o.Connections},
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

// A Result is how a run ended.
type Result struct {
	Seed      uint64
	Config    string     // every option, for people
	Violation *Violation // nil when every invariant held
	Hash      uint64     // of all events: the same seed has the same
	Last      []string   // the last events before a violation
	Stats     Stats
}

// Replay is the command that runs the seed again, and prints every event.
func (r *Result) Replay() string {
	return fmt.Sprintf("xroce sim --messages --seeds %d --verbose", r.Seed)
}

// String tells what failed and how to see it again, "" when nothing did.
func (r *Result) String() string {
	if r.Violation == nil {
		return ""
	}
	return fmt.Sprintf("seed %d: %s\n%s%s\nreplay: %s\n", r.Seed, r.Violation, r.Config,
		strings.Join(r.Last, "\n"), r.Replay())
}

// Run runs one seed. It is safe for concurrent use; a run itself is one goroutine.
func Run(ctx context.Context, seed uint64, o Options) *Result {
	c := derive(seed, o.Plain)
	return runConfig(ctx, &c, &o, tamper{})
}

// runConfig runs a configuration. A panic ends it as a violation.
func runConfig(ctx context.Context, c *Config, o *Options, t tamper) *Result {
	r := &Result{Seed: c.Seed, Config: c.String()}
	if o.Log != nil {
		fmt.Fprint(o.Log, r.Config)
	}
	var w *world
	func() {
		defer func() {
			if p := recover(); p != nil {
				r.Violation = &Violation{Panic, 0, fmt.Sprintf("%v\n%s", p, debug.Stack())}
			}
		}()
		w = newWorld(ctx, c, o, t)
		w.run()
		r.Violation = w.violation
	}()
	if w != nil {
		r.Hash, r.Stats = w.hash, w.stats
		r.Stats.Virtual = w.clock.Now()
		if r.Violation != nil {
			r.Last = w.last()
		}
	}
	return r
}
