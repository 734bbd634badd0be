package cm_test

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
)

// A virtualWorld is two hosts under virtual time: it passes while a test drives them.
type virtualWorld struct {
	*sim.Network
	clock sim.VirtualClock
	hosts [2]*host
}

func newVirtualWorld(t *testing.T, o cm.Options) *virtualWorld {
	t.Helper()
	return newVirtualWorldOf(t, o, 1500)
}

// newVirtualWorldOf makes one of interfaces of an MTU.
func newVirtualWorldOf(t *testing.T, o cm.Options, mtu int) *virtualWorld {
	t.Helper()
	w := &virtualWorld{}
	var err error
	w.Network, err = sim.NewNetwork(1, &w.clock, sim.Faults{})
	must(t, err)
	for i := range w.hosts {
		h := &host{
			mac: [6]byte{2, 0, 0, 0, 0, byte(i + 1)},
			v4:  netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}),
		}
		port, err := w.NewPort(sim.PortConfig{MAC: h.mac, MTU: mtu, Addrs: []netip.Addr{h.v4}})
		must(t, err)
		h.dev, err = engine.OpenLink(port, port, engine.Options{Clock: &w.clock, Direct: true})
		must(t, err)
		t.Cleanup(func() { must(t, h.dev.Close()) })
		o.Linger = -1 // nobody drives the other end while one is closed
		h.equip(t, o)
		w.hosts[i] = h
	}
	return w
}

// until lets time pass until something is done that other goroutines have a part in.
func (w *virtualWorld) until(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); !done(); {
		if time.Now().After(deadline) {
			t.Fatal("it is never done")
		}
		// A step is small, so that an answer of such a goroutine is not late.
		_ = w.Run(&w.clock, w.clock.Now()+roce.Millisecond, done, w.hosts[0].dev, w.hosts[1].dev)
		runtime.Gosched()
	}
}

// pass lets a time pass, during which only the hosts do something.
func (w *virtualWorld) pass(d roce.Time) {
	end := w.clock.Now() + d
	_ = w.Run(&w.clock, end, func() bool { return false }, w.hosts[0].dev, w.hosts[1].dev)
	w.clock.AdvanceTo(end)
}

// connect connects the hosts.
func (w *virtualWorld) connect(t *testing.T, dial, accept cm.Setup) (active, passive *cm.Conn) {
	t.Helper()
	l, err := w.hosts[1].manager.Listen(netip.AddrPortFrom(w.hosts[1].v4, 1))
	must(t, err)
	type end struct {
		conn *cm.Conn
		err  error
	}
	ends := [2]chan end{make(chan end, 1), make(chan end, 1)}
	go func() {
		c, err := w.hosts[0].manager.Dial(context.Background(), l.Addr(), dial)
		ends[0] <- end{c, err}
	}()
	go func() {
		r, err := l.Accept(context.Background())
		if err != nil {
			ends[1] <- end{nil, err}
			return
		}
		c, err := r.Accept(context.Background(), accept)
		ends[1] <- end{c, err}
	}()
	w.until(t, func() bool { return len(ends[0]) == 1 && len(ends[1]) == 1 })
	first, second := <-ends[0], <-ends[1]
	must(t, errors.Join(first.err, second.err, l.Close()))
	return first.conn, second.conn
}

// keepalives is how often a host has asked whether a peer is there.
func keepalives(t *testing.T, h *host) uint64 {
	t.Helper()
	counters, err := h.dev.Counters()
	must(t, err)
	for _, c := range counters {
		if c.Name == "keepalives" {
			return c.Value
		}
	}
	t.Fatal("nobody counts")
	return 0
}

// isOver reports whether a connection is.
func isOver(c *cm.Conn) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// TestKeepalive lets a peer fall silent without a word: the end with a keepalive learns it, at
// the time that the attributes say, the other one never does. A peer that is there answers,
// for hours.
func TestKeepalive(t *testing.T) {
	const (
		idle  = 10 * time.Second
		asks  = 8                            // one, and the default retry count
		lasts = roce.Time(4096 << 17)        // of each, as the local ACK timeout says: 0.54 s
		limit = roce.Time(idle) + asks*lasts // after what was heard last
	)
	for _, tt := range []struct {
		name string
		end  int // that has the keepalive
		easy bool
		ext  roce.Extensions
	}{
		{"active", 0, false, 0},
		{"passive", 1, false, 0},
		{"calls", 0, true, 0},
		{"selective repeat", 0, false, roce.ExtSelectiveRepeat | roce.ExtReorderWindow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newVirtualWorld(t, cm.Options{})
			setups := [2]cm.Setup{w.hosts[0].setup(), w.hosts[1].setup()}
			if tt.easy {
				setups[tt.end] = cm.Setup{PD: w.hosts[tt.end].pd}
			}
			for i := range setups {
				setups[i].Init.Extensions, setups[i].Require = tt.ext, tt.ext
			}
			setups[tt.end].Keepalive = idle
			setups[0].AckTimeout = 17
			var conns [2]*cm.Conn
			conns[0], conns[1] = w.connect(t, setups[0], setups[1])
			asks, heard := conns[tt.end], conns[1-tt.end]
			w.pass(2 * 3600 * roce.Second)
			if isOver(asks) || isOver(heard) {
				t.Fatalf("idle for two hours: %v, %v", asks.Err(), heard.Err())
			}
			if n := keepalives(t, w.hosts[tt.end]); n < 715 || n > 720 {
				t.Errorf("asked %d times in two hours, each 10 s", n)
			}
			if n := keepalives(t, w.hosts[1-tt.end]); n != 0 {
				t.Errorf("the end without a keepalive asked %d times", n)
			}
			called := make(chan error, 1)
			if tt.easy {
				go func() {
					_, err := asks.Receive(context.Background())
					called <- err
				}()
				w.until(t, func() bool { return asks.QP().Snapshot().RecvPosted == 1 })
			} else {
				called <- cm.ErrKeepalive
			}
			must(t, w.SetFaults(sim.Faults{Drop: 1}))
			silent := w.clock.Now()
			w.pass(limit - roce.Time(idle))
			if isOver(asks) {
				t.Errorf("over after %d ns: %v", w.clock.Now()-silent, asks.Err())
			}
			w.pass(roce.Time(idle) + roce.Millisecond)
			if !isOver(asks) || !errors.Is(asks.Err(), cm.ErrKeepalive) ||
				!errors.Is(asks.Err(), cm.ErrTimeout) {
				t.Errorf("a silent peer: %v", asks.Err())
			}
			w.pass(3600 * roce.Second)
			if isOver(heard) {
				t.Errorf("without a keepalive: %v", heard.Err())
			}
			w.until(t, func() bool { return len(called) == 1 })
			if err := <-called; !errors.Is(err, cm.ErrKeepalive) {
				t.Errorf("a call: %v", err)
			}
		})
	}
}

// TestKeepaliveRefused: a keepalive that is too short, or of a queue pair that cannot have one,
// is refused before anybody is asked.
func TestKeepaliveRefused(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a := hosts[0]
	to := netip.AddrPortFrom(hosts[1].v4, 1)
	short, xrc := a.setup(), a.setup()
	short.Keepalive, xrc.Keepalive = time.Microsecond, time.Second
	xrc.Init.Type, xrc.Prepare = roce.TypeXRCSend, nil
	for _, s := range []cm.Setup{short, xrc} {
		_, err := a.manager.Dial(within(t, testTimeout), to, s)
		if !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("%s: %v", s.Keepalive, err)
		}
	}
	if a.counted("cm_tx_msgs_req") > 0 {
		t.Error("the peer was asked")
	}
}
