package cm_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// An easyPair is two ends of a connection that have no completion queues of their own. Each has
// 4 KiB that the other one may access.
type easyPair struct {
	network *sim.Network
	hosts   [2]*host
	a, b    *cm.Conn
	memory  *engine.MR // of b, for a
	far     cm.Remote  // the same, as a knows it
}

// newEasyPair connects two hosts of a world, with so many calls at once and a local ACK timeout.
func newEasyPair(
	t *testing.T, network *sim.Network, hosts [2]*host, calls int, ackTimeout uint8,
) *easyPair {
	t.Helper()
	p := &easyPair{network: network, hosts: hosts}
	a, b := hosts[0], hosts[1]
	var err error
	p.memory, err = b.dev.RegMR(b.pd, make([]byte, 4096),
		mem.LocalWrite|mem.RemoteWrite|mem.RemoteRead|mem.RemoteAtomic)
	must(t, err)
	l, err := b.manager.Listen(netip.AddrPortFrom(b.v4, 1))
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	accept := cm.Setup{
		PD: b.pd, Access: mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic,
		Private: make([]byte, cm.RemoteLen), Init: engine.QPInit{MaxRecvWR: 8},
	}
	cm.RemoteOf(p.memory, 0).Put(accept.Private)
	p.a, p.b = pair(t, l, a, cm.Setup{
		PD: a.pd, Init: engine.QPInit{MaxSendWR: calls}, AckTimeout: ackTimeout,
	}, accept)
	p.far, err = cm.ParseRemote(p.a.Private())
	must(t, err)
	return p
}

// easyTimeout is a local ACK timeout of 0.5 s: with its retries a busy machine has 4 s.
const easyTimeout = 17

// easyWorld is an easyPair of a world of its own.
func easyWorld(t *testing.T, calls int) *easyPair {
	t.Helper()
	o := quick
	o.Linger = 300 * time.Millisecond // for a peer whose device is gone
	network, hosts := newWorld(t, o, engine.Options{})
	return newEasyPair(t, network, hosts, calls, easyTimeout)
}

// close closes both ends, and tests that nothing is left.
func (p *easyPair) close(t *testing.T) {
	t.Helper()
	for _, c := range []*cm.Conn{p.a, p.b} {
		must(t, c.Close())
		over(t, c.Released())
	}
	must(t, p.memory.Close())
	for _, h := range p.hosts {
		h.forgotten(t)
	}
}

// TestVerbs does all that a connection can do by calls.
func TestVerbs(t *testing.T) {
	p := easyWorld(t, 4)
	ctx := within(t, testTimeout)
	near, far := p.hosts[0].mr, p.memory.Bytes()
	copy(near.Bytes(), "one and two")
	must(t, p.a.Write(ctx, p.far.Add(100), near.SGE(0, 4), near.SGE(8, 3)))
	if got := string(far[100:107]); got != "one two" {
		t.Errorf("written: %q", got)
	}
	copy(far[200:], "there")
	must(t, p.a.Read(ctx, p.far.Add(200), near.SGE(1000, 5)))
	if got := string(near.Bytes()[1000:1005]); got != "there" {
		t.Errorf("read: %q", got)
	}
	word, at := far[8:16], p.far.Add(8)
	binary.NativeEndian.PutUint64(word, 40)
	for _, step := range []struct {
		name      string
		do        func() (uint64, error)
		was, then uint64
	}{
		{"add", func() (uint64, error) { return p.a.FetchAdd(ctx, at, 2) }, 40, 42},
		{"swap", func() (uint64, error) { return p.a.CompareSwap(ctx, at, 42, 7) }, 42, 7},
		{"no swap", func() (uint64, error) { return p.a.CompareSwap(ctx, at, 42, 8) }, 7, 7},
	} {
		was, err := step.do()
		if then := binary.NativeEndian.Uint64(word); err != nil || was != step.was ||
			then != step.then {
			t.Errorf("%s: %d became %d, %v", step.name, was, then, err)
		}
	}
	sent := make(chan error, 1)
	go func() { sent <- p.a.Send(ctx, near.SGE(0, 11)) }()
	n, err := p.b.Receive(ctx, p.memory.SGE(300, 64))
	if err != nil || string(far[300:300+n]) != "one and two" {
		t.Errorf("received %d bytes, %q, %v", n, far[300:300+n], err)
	}
	must(t, <-sent)
	p.close(t)
}

// TestVerbsCrowd has many goroutines add to one number, more than there may be calls under way.
func TestVerbsCrowd(t *testing.T) {
	const goroutines, each = 24, 20
	p := easyWorld(t, 3)
	ctx := within(t, testTimeout)
	var crowd sync.WaitGroup
	seen := make(chan uint64, goroutines*each)
	for range goroutines {
		crowd.Go(func() {
			for range each {
				was, err := p.a.FetchAdd(ctx, p.far, 1)
				if err != nil {
					t.Error(err)
					return
				}
				seen <- was
			}
		})
	}
	crowd.Wait()
	close(seen)
	once := map[uint64]bool{}
	for was := range seen {
		once[was] = true
	}
	if got := binary.NativeEndian.Uint64(p.memory.Bytes()); got != goroutines*each ||
		len(once) != goroutines*each {
		t.Errorf("%d, of %d different numbers", got, len(once))
	}
	p.close(t)
}

// bthAt is where the BTH begins in a frame of RoCE v2 over IPv4.
const bthAt = 14 + 20 + 8

// TestVerbsCancelled gives up a READ whose data is on its way, and a WRITE that is lost: when
// the call has returned the memory of the caller is his, at both ends of the wire.
func TestVerbsCancelled(t *testing.T) {
	for _, tt := range []struct {
		name   string
		opcode wire.Opcode // the packet at which the call is given up
		from   int
		call   func(p *easyPair, ctx context.Context) error
	}{
		{"read", wire.RCReadRespOnly, 1, func(p *easyPair, ctx context.Context) error {
			return p.a.Read(ctx, p.far, p.hosts[0].mr.SGE(0, 1000))
		}},
		{"small read", wire.RCReadRespOnly, 1, func(p *easyPair, ctx context.Context) error {
			return p.a.Read(ctx, p.far, p.hosts[0].mr.SGE(0, 8)) // it may ride in the completion
		}},
		{"write", wire.RCWriteOnly, 0, func(p *easyPair, ctx context.Context) error {
			return p.a.Write(ctx, p.far, p.hosts[0].mr.SGE(0, 1000))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			network, hosts := newWorld(t, quick, engine.Options{})
			p := newEasyPair(t, network, hosts, 4, 17) // nothing goes again for half a second
			fill := func(b []byte, with byte) { copy(b, bytes.Repeat([]byte{with}, len(b))) }
			near := p.hosts[0].mr.Bytes()
			fill(near, 1)
			fill(p.memory.Bytes(), 2)
			rule := sim.Rule{From: p.hosts[tt.from].mac, Opcodes: []wire.Opcode{tt.opcode}}
			if tt.from == 1 {
				rule.Delay = roce.Time(timeout.Scaled(time.Second))
			}
			must(t, p.network.SetRules(rule))
			ctx, cancel := context.WithCancel(t.Context())
			var mu sync.Mutex
			returned, leaked := false, false
			p.network.Observe(func(e *sim.Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Kind == sim.Sent && e.From == rule.From && e.Frame[bthAt] == byte(tt.opcode) {
					cancel()
				}
				leaked = leaked || returned && bytes.Contains(e.Frame, []byte{3, 3, 3, 3, 3})
			})
			err := tt.call(p, ctx)
			mu.Lock()
			returned = true
			mu.Unlock()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("given up: %v", err)
			}
			over(t, p.a.Done())
			if err := p.a.Err(); !errors.Is(err, cm.ErrAborted) {
				t.Errorf("the connection: %v", err)
			}
			fill(near, 3) // whatever comes now must not change it, or send it
			waits(t, func() bool { return p.network.UnderWay() == 0 })
			over(t, p.b.Done())
			for i, b := range near {
				if b != 3 {
					t.Fatalf("byte %d is %d", i, b)
				}
			}
			if err := p.a.Write(t.Context(), p.far); !errors.Is(err, cm.ErrAborted) {
				t.Errorf("afterwards: %v", err)
			}
			p.network.Observe(nil)
			if leaked {
				t.Error("the memory was sent after the call")
			}
			p.close(t)
		})
	}
}

// TestVerbsFail: what ends a connection ends the calls that are under way, by name.
func TestVerbsFail(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(p *easyPair) error
		want error
	}{
		{"we hang up", func(p *easyPair) error { return p.b.Close() }, cm.ErrClosed},
		{"the peer hangs up", func(p *easyPair) error { return p.a.Close() }, cm.ErrHungUp},
		{"the manager", func(p *easyPair) error {
			return p.hosts[1].manager.Close()
		}, cm.ErrClosed},
		{"the device", func(p *easyPair) error { return p.hosts[1].dev.Close() }, cm.ErrClosed},
		{"the peer fails", func(p *easyPair) error {
			wrong := cm.Remote{Addr: p.far.Addr, RKey: p.far.RKey + 1}
			err := p.a.Write(context.Background(), wrong, p.hosts[0].mr.SGE(0, 8))
			var failed *roce.WorkError
			if !errors.As(err, &failed) || failed.Status != roce.StatusRemAccessErr {
				return errors.Join(errors.New("a wrong key:"), err)
			}
			<-p.a.Done() // by this, or by the peer, whose queue pair is in ERR, too
			return nil
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := easyWorld(t, 4)
			ctx := within(t, testTimeout)
			ended := make(chan error, 8)
			for range cap(ended) {
				go func() {
					_, err := p.b.Receive(ctx, p.memory.SGE(0, 64))
					ended <- err
				}()
			}
			waits(t, func() bool { return p.b.QP().Snapshot().RecvPosted == uint32(cap(ended)) })
			must(t, tt.end(p))
			for range cap(ended) {
				if err := <-ended; err == nil || tt.want != nil && !errors.Is(err, tt.want) {
					t.Errorf("a receive: %v", err)
				}
			}
			if _, err := p.b.Receive(ctx, p.memory.SGE(0, 64)); err == nil {
				t.Error("it receives afterwards")
			}
		})
	}
}

// TestVerbsMisused: what cannot be called says why, and what was not posted ends nothing.
func TestVerbsMisused(t *testing.T) {
	p := easyWorld(t, 4)
	ctx := within(t, testTimeout)
	near := p.hosts[0].mr
	if err := p.a.Write(ctx, p.far, make([]roce.SGE, 5)...); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("too many pieces: %v", err)
	}
	if _, err := p.a.FetchAdd(ctx, p.far.Add(1), 1); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("not a multiple of 8: %v", err)
	}
	_, err := p.hosts[0].manager.Dial(ctx, netip.AddrPortFrom(p.hosts[1].v4, 1), cm.Setup{})
	if !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("no protection domain: %v", err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := p.a.Write(done, p.far, near.SGE(0, 8)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if _, err := cm.ParseRemote(make([]byte, cm.RemoteLen-1)); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("a name of memory that is too short: %v", err)
	}
	must(t, p.a.Write(ctx, p.far, near.SGE(0, 8))) // the connection goes on
	a, b := p.hosts[0], p.hosts[1]
	l, err := b.manager.Listen(netip.AddrPortFrom(b.v4, 2))
	must(t, err)
	c, d := pair(t, l, a, a.setup(), b.setup())
	if err := c.Write(ctx, p.far, near.SGE(0, 8)); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("completion queues of the application: %v", err)
	}
	must(t, errors.Join(c.Close(), d.Close(), l.Close()))
	p.close(t)
}

// TestVerbsDirect makes calls on devices in direct mode, where nobody polls.
func TestVerbsDirect(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	var hosts [2]*host
	for i := range hosts {
		hosts[i], _ = newDirectHost(t, network, byte(i+1))
		hosts[i].mr, err = hosts[i].dev.RegMR(hosts[i].pd, make([]byte, 64), mem.LocalWrite)
		must(t, err)
	}
	p := newEasyPair(t, network, hosts, 4, easyTimeout)
	must(t, p.a.Write(within(t, testTimeout), p.far, hosts[0].mr.SGE(0, 64)))
	p.close(t)
}
