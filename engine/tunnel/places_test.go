package tunnel

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/xsk/xsktest"
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
			QP: qp, Private: ask,
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
			ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
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
			used := func() (goroutines int, heap uint64) {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return runtime.NumGoroutine(), m.HeapAlloc
			}
			forge(len(good)) // what is made once
			goroutines, heap := used()
			forge(many)
			a.await("connections or goroutines are held", func(Stats) bool {
				return a.incoming() <= 1 && runtime.NumGoroutine() <= goroutines+5
			})
			goroutinesThen, heapThen := used()
			t.Logf("%d goroutines and %d KiB before, %d and %d KiB behind %d requests",
				goroutines, heap>>10, goroutinesThen, heapThen>>10, many)
			if heapThen > heap+4<<20 {
				t.Error("something is left of them")
			}
			if over == OverUD && a.Stats().Peers[0].Dropped["bad_key"] == 0 {
				t.Errorf("not counted: %+v", a.Stats())
			}
		})
	}
}
