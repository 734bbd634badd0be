package perf

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

// A pair is two ends that are to run a test with each other on a simulated network.
type pair struct {
	network *sim.Network
	ends    [2]Options // the client's first
	records [2]Record
	devs    [2]*engine.Device // those of the ends, once they run
	// wrap, if not nil, is given the connection of each end.
	wrap func(end int, conn net.Conn) net.Conn
	// ctx, if not nil, is what the ends run under.
	ctx context.Context
}

// newPair makes two ends with the same configuration.
func newPair(t *testing.T, c Config) *pair {
	t.Helper()
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{network: network}
	for i := range p.ends {
		p.ends[i] = Options{Config: c, Tell: &p.records[i]}
		p.ends[i].Dial = i == 0
	}
	return p
}

// run runs both ends until they have ended, and returns how. An end that has ended
// closes its connection, as a process does.
func (p *pair) run(t *testing.T) [2]error {
	t.Helper()
	return p.start(t)()
}

// start is run that does not wait: the returned function does.
func (p *pair) start(t *testing.T) (wait func() [2]error) {
	t.Helper()
	if p.ctx == nil {
		p.ctx = peer.Stretch(t.Context(), timeout.Multiplier())
	}
	ctx, cancel := context.WithTimeout(p.ctx, timeout.Scaled(time.Minute))
	var conns [2]net.Conn
	conns[0], conns[1] = tcpPair(t)
	var errs [2]error
	var running sync.WaitGroup
	for i := range p.ends {
		o := p.ends[i]
		if _, err := o.Settle(true); err != nil {
			t.Fatal(err)
		}
		o.OtherDrives = !o.Direct()
		dev := device(t, p.network, byte(i+1), engine.Options{Direct: o.Direct()})
		p.devs[i] = dev
		conn := conns[i]
		if p.wrap != nil {
			conn = p.wrap(i, conn)
		}
		via := NewSocket(dev, conn, o.Dial)
		via.Group = o.Group
		running.Go(func() {
			_, errs[i] = Run(ctx, dev, via, o)
			conn.Close()
		})
	}
	return func() [2]error {
		t.Helper()
		defer cancel()
		running.Wait()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("not over in time: client %v, server %v", errs[0], errs[1])
		}
		return errs
	}
}

// wantsNoResult fails the test unless both ends have ended with an error and told no result.
func (p *pair) wantsNoResult(t *testing.T, errs [2]error) {
	t.Helper()
	for i, name := range []string{"client", "server"} {
		if errs[i] == nil || len(p.records[i].Rows) > 0 {
			t.Errorf("%s: error %v, results %+v", name, errs[i], p.records[i].Rows)
		}
	}
}

// hurries bounds all that the ends wait for each other.
func (p *pair) hurries(most time.Duration) {
	for i := range p.ends {
		p.ends[i].hurry = patience{most, most, most}
	}
}

// brief is a test of few messages.
func brief(test Test) Config {
	c := Config{
		Test: test, Type: roce.TypeRC, QPs: 1, Size: 4096, Iters: 200, TxDepth: 16, RxDepth: 32,
		CQMod: 4, PostList: 1, RecvPostList: 1, Timeout: 20, GIDIndex: AutoGID,
		Atomic: FetchAndAdd, NoPeak: true,
	}
	if test.Verb == Atomic {
		c.Size = atomicSize
	}
	if test.Latency {
		c.TxDepth, c.CQMod = 1, 1
	}
	return c
}
