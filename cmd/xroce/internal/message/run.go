package message

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine/msg"
)

// How long a peer may take, unless the test says.
const (
	setupTime   = 30 * time.Second  // to say what it is about to do
	silenceTime = 120 * time.Second // from one message to the next
	partingTime = 6 * time.Second   // to take leave: longer than to send that twice
)

// errSetup says that a peer that was met did not say what it is about to do.
var errSetup = errors.New("the peer did not say in time what it is about to do")

// Hooks are told how a test goes. Each may be nil.
type Hooks struct {
	Listening func(netip.AddrPort)         // a server waits for its client
	Refused   func(peer string, why error) // somebody came who is not its client
	Met       func()                       // it has met its client
	Short     func(up, rails int)          // it begins though not all rails have come
	Agreed    func(peer string)            // the ends are about to do the same
	Progress  func(done, total int64)      // messages of the client over all connections
}

// A run is a test that runs.
type run struct {
	config   Config
	endpoint *msg.Endpoint
	hooks    Hooks
	links    []*link
	out, in  pattern
	door     *door // of a server, nil for none
	rails    []msg.RailState
	done     atomic.Int64 // messages that came or went, of all connections

	cold atomic.Int64  // connections of a client with messages under way that do not count
	warm chan struct{} // closed when there are none
}

func (r *run) setup() time.Duration { return cmp.Or(r.config.Setup, setupTime) }

// Run makes a test over new connections of an endpoint, and returns what came of it.
func Run(ctx context.Context, e *msg.Endpoint, c Config, h Hooks) (*Result, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	r := &run{config: c, endpoint: e, hooks: h}
	r.config.Setup = peer.Stretched(ctx, r.setup())
	r.out, r.in = newPattern(c.Size, false), newPattern(c.Reply, true)
	if c.Server {
		r.out, r.in = r.in, r.out
	}
	err := r.meet(ctx)
	if r.door != nil {
		defer r.door.close()
		r.door.enough()
	}
	if err == nil {
		if h.Agreed != nil {
			h.Agreed(r.links[0].conn.RemoteAddr().String())
		}
		err = r.measure(ctx)
	}
	if err == nil {
		r.rails = r.railStates()
	}
	if parting := r.part(ctx, err == nil); err == nil {
		err = parting
	}
	if err != nil {
		return nil, err
	}
	return r.result(), nil
}

// measure has each connection do its part. The first that fails ends all.
func (r *run) measure(ctx context.Context) error {
	silence := cmp.Or(r.config.Silence, silenceTime)
	ctx, stop := peer.PatienceWith(ctx, silence, func() uint64 { return uint64(r.done.Load()) })
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.cold.Store(int64(len(r.links)))
	r.warm = make(chan struct{})
	var all sync.WaitGroup
	for i, l := range r.links {
		all.Go(func() {
			if err := l.measure(ctx); err != nil {
				if len(r.links) > 1 {
					err = fmt.Errorf("connection %d of %d: %w", i+1, len(r.links), err)
				}
				cancel(err)
			}
		})
	}
	over := make(chan struct{})
	go func() {
		all.Wait()
		close(over)
	}()
	r.tell(over)
	return context.Cause(ctx)
}

// tell says how far the test is until it is over.
func (r *run) tell(over <-chan struct{}) {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	total := int64(r.config.total()) * int64(r.config.Peers)
	if r.config.Test != Stream {
		total *= 2
	}
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
			if r.hooks.Progress != nil {
				r.hooks.Progress(min(r.done.Load(), total), total)
			}
		}
	}
}

const progressEvery = 200 * time.Millisecond

// part takes leave of all peers: in order, or as fast as it goes. That a peer is gone already is
// no failure then.
func (r *run) part(ctx context.Context, inOrder bool) error {
	most := partingTime
	if !inOrder {
		most = time.Second
	}
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	errs := make([]error, len(r.links))
	var all sync.WaitGroup
	for i, l := range r.links {
		all.Go(func() {
			if err := l.conn.Close(within); inOrder && within.Err() == nil {
				errs[i] = err
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
