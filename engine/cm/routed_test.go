package cm_test

import (
	"fmt"
	"net/netip"
	"testing"

	"xroce/engine/cm"
	"xroce/roce"
	rcm "xroce/roce/cm"
)

// floodAt is flood at a rate: the clock of the host is moved before requests, so that these take
// the looks that there are by then.
func (s *siege) floodAt(t *testing.T, base string, n, rate int) {
	t.Helper()
	step := max(rate/1000, 1)
	for sent := 0; sent < n; sent += step {
		before := s.received()
		s.clock.now.Add(int64(roce.Second) * int64(step) / int64(rate))
		s.stranger.burst(t, step, func() netip.Addr {
			return numbered(netip.MustParseAddr(base), s.stranger.n)
		})
		waits(t, func() bool { return s.received() >= before+uint64(step) })
	}
}

// TestFloodBesideARouter: a station on the link asks in one new name after the other, of hosts to
// which the router of the target leads. They are known by that, and take all looks that there are.
// Who is behind the router is not known before its look, and gets it: it waits that long, since
// another station asks more.
func TestFloodBesideARouter(t *testing.T) {
	for _, rate := range []int{2000, 20_000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			// It asks again after two minutes, however busy the machine is.
			s := newSiegeOf(t, cm.Options{Machine: rcm.Config{ResponseTimeout: 25}})
			ctx := within(t, testTimeout)
			s.town.gateway.Store(&s.peer.mac)
			s.floodAt(t, faraway, 1000, rate)
			before := s.received()
			dialled := make(chan error, 1)
			go func() {
				c, err := s.peer.manager.Dial(ctx, s.at, s.peer.setup())
				if err == nil {
					c.Close()
				}
				dialled <- err
			}()
			waits(t, func() bool { return s.received() == before+1 })
			s.flood(t, faraway, 1) // before there is a look
			s.floodAt(t, faraway, 60, rate)
			r, err := s.listener.Accept(ctx)
			must(t, err)
			if r.RemoteAddr().Addr() != s.peer.v4 {
				t.Fatalf("%s comes first of %d", r.RemoteAddr(), s.listener.Waiting()+1)
			}
			_, err = r.Accept(ctx, s.setup())
			must(t, err)
			must(t, <-dialled)
			if n := s.peer.counted("cm_tx_retries_req"); n != 0 {
				t.Errorf("the client had to ask %d times more", n)
			}
		})
	}
}

// TestTooManyRoutes: when there are more destinations than are remembered, the others are not
// forgotten.
func TestTooManyRoutes(t *testing.T) {
	for _, n := range []int{cm.MaxRoutes, cm.MaxRoutes + 1, 4 * cm.MaxRoutes} {
		if known := cm.Remembered(n); known != cm.MaxRoutes {
			t.Errorf("of %d destinations %d are known, want %d", n, known, cm.MaxRoutes)
		}
	}
}
