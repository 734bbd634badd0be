package perf

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xroce/engine"
	"xroce/engine/oob/perftest"
	"xroce/engine/sim"
	"xroce/roce/wire"
)

// A slowPeer is the Connector to a peer that takes its time.
type slowPeer struct {
	words       time.Duration // before it tells its version
	keys        time.Duration // before it tells its first keys: it makes its memory
	told        bool          // those
	interrupted chan struct{} // closed when reason is there
	reason      error
	once        sync.Once
}

func newSlowPeer() *slowPeer { return &slowPeer{interrupted: make(chan struct{})} }

// wait lets a time pass, unless it is interrupted.
func (p *slowPeer) wait(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-p.interrupted:
		return p.reason
	}
}

// Versions implements Connector.
func (p *slowPeer) Versions(perftest.Version, bool) (perftest.Version, bool, error) {
	return perftest.OurVersion, false, p.wait(p.words)
}

// System implements Connector.
func (p *slowPeer) System(local perftest.System) (perftest.System, error) { return local, nil }

// MTU implements Connector.
func (p *slowPeer) MTU(local wire.MTU) (wire.MTU, error) { return local, nil }

// Plan implements Connector.
func (p *slowPeer) Plan(local string) (string, error) { return local, nil }

// Keys implements Connector.
func (p *slowPeer) Keys(local perftest.Endpoint) (perftest.Endpoint, error) {
	if p.told {
		return local, nil
	}
	p.told = true
	return local, p.wait(p.keys)
}

// Reports implements Connector.
func (p *slowPeer) Reports(local perftest.Report) (perftest.Report, error) { return local, nil }

// Done implements Connector.
func (p *slowPeer) Done() error { return nil }

// Connect implements Connector.
func (p *slowPeer) Connect(context.Context, Link) error { return nil }

// Interrupt implements Connector.
func (p *slowPeer) Interrupt(err error) {
	p.once.Do(func() { // two limits may end at once
		p.reason = err
		close(p.interrupted)
	})
}

// Watch implements Connector.
func (p *slowPeer) Watch(func(error)) {}

// Heard implements Connector.
func (p *slowPeer) Heard() bool { return false }

// TestSetupTime: the time of the peer does not pass while this end makes its memory, and is longer
// where the peer has much of its own to make; but it ends.
func TestSetupTime(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	must(t, err)
	dev := device(t, network, 1, engine.Options{Direct: true})
	const second = time.Second
	const size = 32 << 20 // of the memory of the larger tests: half a second
	for _, tt := range []struct {
		name               string
		large              bool
		words, fills, keys time.Duration
		silence            time.Duration // that ends any wait
		late               bool
	}{
		{"our memory takes an hour", false, 0, time.Hour, 0, silence, false},
		{"and the peer some time", false, 14 * second, time.Hour, 15 * second, silence, false},
		{"both parts are too long", false, 16 * second, time.Hour, 15 * second, silence, true},
		{"no word", false, 31 * second, 0, 0, silence, true},
		{"memory of the peer", true, 0, time.Hour, 30450 * time.Millisecond, silence, false},
		{"more than it can take", true, 0, 0, 30600 * time.Millisecond, silence, true},
		{"it is no silence", true, 0, 0, 20200 * time.Millisecond, 20 * second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := brief(Test{Verb: Write})
				c.OtherDrives = true
				if tt.large {
					c.QPs, c.Size = 4, size/8
				}
				if _, err := c.Settle(true); err != nil {
					t.Fatal(err)
				}
				p := newSlowPeer()
				p.words, p.keys = tt.words, tt.keys
				r := &run{
					info: Info{Config: c}, via: p, tell: &Record{},
					fills: func() { time.Sleep(tt.fills) },
				}
				r.dog.patience = patience{setupTime, tt.silence, throughTime}
				err := r.setup(t.Context(), dev)
				if errors.Is(err, errSetup) != tt.late || !tt.late && err != nil {
					t.Errorf("%v", err)
				}
				if err == nil {
					r.close()
				}
			})
		})
	}
}
