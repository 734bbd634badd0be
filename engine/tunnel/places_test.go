package tunnel

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/heap"
	"xroce/xsk/xsktest/timeout"
)

// TestConnectionsOfAPeer: a peer that asks for one connection after the other, or somebody in its
// name, has as many as it may need and no more, and another peer gets in.
func TestConnectionsOfAPeer(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Over: OverRC}
	a := l.site(1, 1500, TAP, c, 2, 3)
	b := l.site(2, 1500, TAP, c, 9)
	ask, _, err := b.ask(&b.hello, 0)
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for range 2*2*MaxQueues + 2 {
		qp, err := b.createQP(engine.QPInit{
			SendCQ: b.lanes[0].cq, RecvCQ: b.lanes[0].cq, MaxSendWR: 1, MaxRecvWR: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := b.manager.DialService(t.Context(), addr(1), b.service(), cm.Setup{
			QP: qp, Private: ask, AckTimeout: 18,
		})
		if err != nil {
			_ = qp.Close()
			continue
		}
		taken++
		defer b.hangUp(conn)
	}
	if n := a.Stats().Peers[0].Dropped["too_many_connections"]; taken != peerPlaces || n == 0 {
		t.Errorf("%d connections, want %d; %d refused", taken, peerPlaces, n)
	}
	other := l.site(3, 1500, TAP, c, 1)
	other.awaitUp()
}

// TestRestartedWithAllPlaces: a peer that began anew, while who it was before has all places, gets
// one, and who has its address alone in what he asks, or nothing but another instance, ends
// nothing.
func TestRestartedWithAllPlaces(t *testing.T) {
	for _, over := range []Over{OverRC, OverUC} {
		for _, key := range []*Key{nil, testKey("one")} {
			t.Run(over.String()+" key "+onOff(map[bool]uint8{true: helloSealed}[key != nil]),
				func(t *testing.T) {
					t.Parallel()
					restartedWithAllPlaces(t, Config{Format: encap.EoIB, Over: over, Key: key})
				})
		}
	}
}

func restartedWithAllPlaces(t *testing.T, c Config) {
	t.Helper()
	l := newLAN(t, sim.Faults{})
	l.response = patient // nothing is asked twice
	c.renew = time.Hour  // none is given up before all are there
	a, b := l.site(1, 1500, TAP, c, 2), l.still(2, c, 9)
	to := newPeer(Peer{Addr: addr(1)}, 1, 1)
	for range peerPlaces {
		conn, _, err := b.dial(t.Context(), to, b.lanes[0])
		if err != nil {
			t.Fatal(err)
		}
		defer b.hangUp(conn)
	}
	before := b.hello.instance
	a.await("not all there", func(Stats) bool {
		return a.peers[0].instance.Load() == before && a.held() == peerPlaces
	})
	b.hello.instance += 2
	to.cookie.Store(0)
	if _, _, err := b.dialOnce(t.Context(), to, b.lanes[0]); !errors.Is(err, errCookie) {
		t.Errorf("without a proof: %v", err)
	}
	if n := a.held(); n != peerPlaces {
		t.Errorf("%d connections are left, for a request that proves nothing", n)
	}
	a.await("no place for it", func(Stats) bool {
		conn, _, err := b.dial(t.Context(), to, b.lanes[0])
		if err == nil {
			defer b.hangUp(conn)
			a.await("connections of before are left", func(Stats) bool { return a.incoming() == 1 })
		}
		return err == nil
	})
}

// held is how many connections of peers a site holds that nothing has ended.
func (s *site) held() (n int) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	for _, c := range s.in.conns {
		if len(c.stale) == 0 && c.qp.State() == roce.StateRTS {
			n++
		}
	}
	return n
}

// TestOutagesOverUC: what is left of the connections of a peer that gave them up while the network
// was down, and connected anew, ends by itself.
func TestOutagesOverUC(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	l.response = 12 // who asked says for a quarter of a second that it hangs up
	c := Config{Format: encap.EoIB, Over: OverUC, renew: 100 * time.Millisecond}
	a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
	way := &b.peers[0].ways[0]
	for range 2 {
		a.awaitUp()
		b.awaitUp()
		w := way.Load()
		if err := l.network.SetFaults(sim.Faults{Blocked: true}); err != nil {
			t.Fatal(err)
		}
		if now := way.Load(); now != nil {
			w = now
		}
		b.await("still connected", func(Stats) bool {
			return w == nil || w.gone.Load() && way.Load() == nil
		})
		if err := l.network.SetFaults(sim.Faults{}); err != nil {
			t.Fatal(err)
		}
	}
	b.awaitUp()
	a.await("connections of before are left", func(Stats) bool {
		return a.incoming() == 1 && a.peers[0].incoming.Load() == 1
	})
	hello := frame(0xff, 2, 70)
	for came := false; !came; { // one that is under way while a connection is replaced may be lost
		b.awaitUp()
		b.send(inner.VNet{}, hello)
		sent := b.Stats().Peers[0].Connects
		a.await("nothing comes", func(Stats) bool {
			came = len(a.queue.out) > 0
			return came || b.Stats().Peers[0].Connects > sent
		})
	}
	if _, got := a.receive(); !bytes.Equal(got, hello) {
		t.Errorf("%x came", got)
	}
}

// endsUnheard ends a peer, while nothing is taken of what that completes here.
func (s *site) endsUnheard(peer *site) {
	s.t.Helper()
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	var ends []*incoming
	for _, c := range s.in.conns {
		if c.peer == s.peers[0] {
			ends = append(ends, c)
		}
	}
	peer.end()
	s.await("not over", func(Stats) bool {
		return !slices.ContainsFunc(ends, func(c *incoming) bool {
			return c.qp.State() == roce.StateRTS
		})
	})
}

// TestMoreQueues: a peer with more queues than this end, and so more connections, goes and comes
// back, and another peer does not notice, however busy this end is meanwhile.
func TestMoreQueues(t *testing.T) {
	for _, over := range []Over{OverRC, OverUC} {
		t.Run(over.String(), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			c := Config{Format: encap.EoIB, Over: over}
			a := l.site(1, 1500, TAP, c, 2, 3)
			other := l.site(3, 1500, TAP, c, 1)
			other.awaitUp()
			const queues = 8
			dev, m := l.device(2, 1500)
			for range 2 {
				inside := &Inside{Name: "tap0", Kind: TAP, MTU: 1500}
				for range queues {
					inside.Queues = append(inside.Queues, newFakeQueue())
				}
				b := l.siteIn(dev, m, inside, c, 1)
				b.awaitUp()
				a.await("not all there", func(Stats) bool { return a.held() == queues+1 })
				a.endsUnheard(b)
				a.await("connections are left", func(Stats) bool { return a.incoming() == 1 })
			}
			if n := a.in.cq.Depth(); n > 1024 {
				t.Errorf("room for %d completions is left", n)
			}
			hello := frame(0xff, 3, 70)
			other.send(inner.VNet{}, hello)
			if _, got := a.receive(); !bytes.Equal(got, hello) {
				t.Errorf("%x came", got)
			}
		})
	}
}

// TestAgeing: an address that sends nothing for long is known no more, and frames for it go to all
// again, without any traffic in between.
func TestAgeing(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Age: 50 * time.Millisecond}
	a := l.site(1, 1500, TAP, c, 2, 3)
	others := []*site{l.site(2, 1500, TAP, c, 1), l.site(3, 1500, TAP, c, 1)}
	a.awaitUp()
	for _, s := range others {
		s.awaitUp()
	}
	others[0].send(inner.VNet{}, frame(0xff, 2, 100))
	a.receive()
	a.await("the address is still there", func(s Stats) bool { return s.Addresses == 0 })
	a.send(inner.VNet{}, frame(2, 1, 120))
	for _, s := range others {
		if _, got := s.receive(); len(got) != 120 {
			t.Errorf("%d bytes came", len(got))
		}
	}
}

// TestForgedRequestsLeaveNothing: thousands of requests, of strangers and in the name of a peer
// with a hello that is damaged, cut or of another network, leave neither goroutines nor
// connections, and memory as it was.
func TestForgedRequestsLeaveNothing(t *testing.T) {
	many := 2000
	if xsktest.RaceDetector {
		many = 300
	}
	for _, over := range []Over{OverUD, OverRC} {
		t.Run(over.String(), func(t *testing.T) {
			l := newLAN(t, sim.Faults{})
			c := Config{Format: encap.EoIB, Over: over, Key: testKey("one")}
			a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
			a.awaitUp()
			b.awaitUp()
			good, _, err := b.ask(&b.hello, b.peers[0].cookie.Load())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(5*time.Minute))
			defer cancel()
			forge := func(n int) {
				t.Helper()
				for i := range n {
					ask := append([]byte{}, good...)
					ask[i%len(ask)] ^= byte(1 + i%255)
					if i%5 == 0 {
						ask = ask[:i%len(ask)]
					}
					if bytes.Equal(bytes.TrimRight(ask, "\x00"), bytes.TrimRight(good, "\x00")) {
						continue // private data are filled up with zeros, so it is a good one
					}
					if err := b.replay(ask); err == nil {
						t.Fatalf("%d: taken", i)
					} else if ctx.Err() != nil {
						t.Fatal(errors.Join(err, ctx.Err()))
					}
				}
			}
			forge(len(good)) // what is made once
			goroutines, held := runtime.NumGoroutine(), heap.Live()
			forge(many)
			a.await("connections or goroutines are held", func(Stats) bool {
				return a.incoming() <= 1 && runtime.NumGoroutine() <= goroutines+5
			})
			const limit = 4 << 20
			grown := heap.Grown(held, limit)
			t.Logf("%d KiB more are held behind %d requests", grown>>10, many)
			if grown > limit {
				t.Error("something is left of them")
			}
			if over == OverUD && a.Stats().Peers[0].Dropped["bad_key"] == 0 {
				t.Errorf("not counted: %+v", a.Stats())
			}
		})
	}
}
