package perf

import (
	"context"
	"errors"
	"time"

	"xroce/cmd/perfdump"
	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/oob/perftest"
	"xroce/roce"
	"xroce/roce/wire"
)

// Info is what both ends have agreed on, and what the device is.
type Info struct {
	Config
	Device        string
	Backend       string
	PathMTU       wire.MTU
	GID           int
	Outstanding   int // READs and atomics at a time
	RemoteVersion perftest.Version
	Local, Remote []perftest.Endpoint
}

// A Row is a result: of a size, or of an interval.
type Row struct {
	perftest.Report
	Latency *Latency // of a latency test by iterations
	// TPS is round trips a second, of a latency test by duration, with the
	// average latency in Report.Average.
	TPS     float64
	CPUUtil float64 // percent
	Lost    uint64  // messages that did not come, over an unreliable service
	Strays  uint64  // messages of others, or of earlier sizes, which do not count

	AfterIntervals bool // intervals were told before

	// Local and Remote, of a Record, are what this end has sent and what the other one has, of a
	// test in which both are told apart.
	Local, Remote *Row
}

// A Reporter tells the user what happens, in this order.
type Reporter interface {
	Agreed(*Info)              // the ends know each other
	Begins(*Info)              // rows follow
	Interval(*Info, *Interval) // at once; its result comes later
	Row(*Info, *Row)           // a result
	Both(i *Info, local, remote *Row)
	Ends(*Info)
}

// A run is one test from the first word to the last.
type run struct {
	*end
	info   Info
	via    Connector
	tell   Reporter
	dog    watchdog
	sized  bool
	direct bool
	asTool bool
	system perftest.System // what both ends use
	plans  bool            // the peer tells its plan, so it is one of ours
	fills  func()          // Options.fills
	ready  *region         // Options.region
	last   perftest.Report // what this end measured last
	began  time.Time       // of the loop
	dump   *perfdump.Dump  // nil to keep nothing
	held   func()          // tells the result that was measured last, nil when it is told
}

// Options are what Run needs besides the test.
type Options struct {
	Config
	Sized bool // the user asked for this size
	Tell  Reporter
	// Dump, if not nil, gets the memory of the test. It needs one size, and receives
	// that are not shared.
	Dump *perfdump.Dump

	region *region // what Ready has made, nil without

	// For tests: what bounds each time that is waited for the peer, where it is not 0,
	// and whether to tell no plan, like the tool.
	hurry  patience
	asTool bool
	// fills, if not nil, is called when this end makes its memory.
	fills func()
}

// Run makes a test on a device with the peer of a connector. It returns when both
// ends are through, or this one has failed: nothing waits for ever for a peer. The end of
// the context ends all waiting. Memory that Ready has not made, Run makes.
func Run(ctx context.Context, dev *engine.Device, via Connector, o Options) (*Info, error) {
	r := &run{
		info: Info{Config: o.Config, Device: dev.Name(), Backend: dev.Link().Backend},
		via:  via, tell: o.Tell, sized: o.Sized, direct: !o.OtherDrives, dump: o.Dump,
		asTool: o.asTool, fills: o.fills, ready: o.region,
	}
	r.dog.patience = patience{
		peer.Stretched(ctx, setupTime), silence, throughTime,
	}.within(o.hurry)
	defer interrupts(ctx, via)()
	if err := r.setup(ctx, dev); err != nil {
		return nil, err
	}
	err := r.measure(ctx)
	if err != nil && ctx.Err() == nil {
		err = r.withStrays(r.cause(err))
	}
	if r.dump != nil {
		describeDump(r.dump, r.end)
	}
	r.closeQPs()
	defer r.deregister()
	if err != nil {
		return nil, err
	}
	if r.dump != nil {
		if err := finishDump(r.dump, r.end); err != nil {
			return nil, err
		}
	}
	return &r.info, nil
}

// interrupts has the end of a context interrupt a connector, until the returned function
// is called, which reports whether it has not.
func interrupts(ctx context.Context, via Connector) (stop func() bool) {
	return context.AfterFunc(ctx, func() { via.Interrupt(context.Cause(ctx)) })
}

// talk makes steps of the exchange under the watchdog: the peer may take its time as
// long as packets come. A device that nobody else drives is driven meanwhile.
func (r *run) talk(ctx context.Context, f func() error) error {
	ctx = r.dog.begin(ctx, r.end, nil)
	defer r.dog.stop()
	defer interrupts(ctx, r.via)()
	if !r.direct {
		return f()
	}
	over, cancel := context.WithCancel(ctx)
	defer cancel()
	said := make(chan error, 1)
	go func() {
		said <- f()
		cancel()
	}()
	var none [1]roce.Completion
	if _, err := r.rest.Wait(over, none[:]); over.Err() == nil {
		r.via.Interrupt(err) // the device failed
	}
	return <-said
}

// watched runs a loop under the watchdog.
func (r *run) watched(ctx context.Context, loop func(context.Context) error) error {
	r.began = time.Now()
	ctx = r.dog.watch(ctx, r.end, r.via)
	defer r.dog.stop()
	return loop(ctx)
}

// hold keeps a result, and tells the one before: what the exchange does not come to its
// end with is no result.
func (r *run) hold(tell func()) {
	r.release()
	r.held = tell
}

// release tells the result that is held, if there is one.
func (r *run) release() {
	if r.held != nil {
		r.held()
		r.held = nil
	}
}

// happened is how loops tell that something happened.
func (r *run) happened(n uint64) {
	r.dog.progress.Store(n)
	switch c := r.cfg; {
	case c.Progress == nil || c.Infinite:
	case c.Duration > 0:
		c.Progress(int64(time.Since(r.began)/time.Second), int64(c.Duration/time.Second))
	default:
		c.Progress(int64(n), int64(c.counted()))
	}
}

// measure makes the test and takes leave.
func (r *run) measure(ctx context.Context) error {
	r.tell.Begins(&r.info)
	measure := r.measureBandwidth
	if r.cfg.Test.Latency {
		measure = r.measureLatency
	}
	if !r.cfg.passive() {
		for _, size := range r.cfg.sizes(r.mtu) {
			if err := measure(ctx, size); err != nil {
				return err
			}
		}
	}
	if err := r.farewell(ctx); err != nil {
		return err
	}
	r.release()
	r.tell.Ends(&r.info)
	return nil
}

// farewell is the end of the exchange, in which the end that was passive learns the
// result.
func (r *run) farewell(ctx context.Context) error {
	c := r.cfg
	if c.Test.Latency && c.Test.Verb == Write {
		return r.linger(ctx) // these two just part
	}
	if !c.Test.Latency && c.Test.Verb != Send && !c.Both {
		if err := r.barrier(ctx); err != nil {
			return err
		}
		remote, err := r.reports(ctx)
		if err != nil {
			return err
		}
		if c.passive() {
			if err := r.refused(); err != nil {
				return err // whatever the peer says
			}
			r.hold(func() { r.tell.Row(&r.info, &Row{Report: remote}) })
		}
	}
	return r.talk(ctx, func() error {
		if _, err := r.via.Keys(r.local[0]); err != nil {
			return err
		}
		return r.via.Done()
	})
}

// reports exchanges results. That of a peer which only answered is never looked at.
func (r *run) reports(ctx context.Context) (remote perftest.Report, err error) {
	err = r.talk(ctx, func() error {
		remote, err = r.via.Reports(r.last)
		return err
	})
	if err == nil && (r.cfg.passive() || r.cfg.Both) {
		err = remote.Check()
	}
	return remote, err
}

// lingerTime is longer than a peer with the same timeout (-u) waits for an acknowledgement, but no
// longer than a user does.
func lingerTime(timeout uint8) time.Duration {
	const least, most = 150 * time.Millisecond, time.Second
	return min(max(least, 9*(4096<<timeout)/4), most)
}

// linger stays for a peer that did not get our last acknowledgement.
func (r *run) linger(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lingerTime(r.cfg.Timeout))
	defer cancel()
	var none [1]roce.Completion
	if _, err := r.rest.Wait(ctx, none[:]); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
