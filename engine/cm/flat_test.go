package cm_test

import (
	"net/netip"
	"runtime"
	"testing"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	rcm "xroce/roce/cm"
	"xroce/roce/wire"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/heap"
)

// invented are addresses of those who are not there: on the link, and where no route is to.
var invented = map[string]func(n int) netip.Addr{
	"nearby": func(n int) netip.Addr {
		return numbered(netip.MustParseAddr(nearby), uint32(n%200))
	},
	"far away": func(n int) netip.Addr {
		return numbered(netip.AddrFrom4([4]byte{203}), uint32(n))
	},
}

// flat lets strangers ask as often as in a second of a flood, and checks that this holds no more
// memory than a few hundred requests, and no goroutine more than may look for addresses.
func (s *siege) flat(t *testing.T, next func(n int) netip.Addr, what func(netip.Addr) message) {
	t.Helper()
	most := 20_000
	if testing.Short() || xsktest.RaceDetector {
		most = 2000
	}
	const few, more, searches = 512, 2 << 20, 64
	n := 0
	ask := func(requests int) {
		for end := n + requests; n < end; {
			before, some := s.received(), min(strangersAt, end-n)
			for i := range some {
				n++
				src := next(n)
				s.stranger.post(t, i, src, what(src))
			}
			s.stranger.left(t, some)
			waits(t, func() bool { return s.received() == before+uint64(some) })
		}
	}
	ask(few)
	held, goroutines := heap.Live(), runtime.NumGoroutine()
	ask(most)
	if n := heap.Grown(held, more); n > more {
		t.Errorf("%d bytes more are held", n)
	}
	if n := runtime.NumGoroutine() - goroutines; n > searches {
		t.Errorf("%d goroutines more", n)
	}
	if used := s.manager.Usage(); used.HalfOpen > 256 {
		t.Errorf("held: %+v", used)
	}
}

// TestStrangersLeaveNoMemory: what strangers ask for is not kept, and a peer connects beside them.
func TestStrangersLeaveNoMemory(t *testing.T) {
	for name, next := range invented {
		t.Run(name, func(t *testing.T) {
			s := newSiege(t)
			s.flat(t, next, func(src netip.Addr) message { return s.stranger.request(src) })
			s.connects(t)
		})
	}
}

// TestLookupsLeaveNoMemory is that of lookups of a datagram service.
func TestLookupsLeaveNoMemory(t *testing.T) {
	for name, next := range invented {
		t.Run(name, func(t *testing.T) {
			s := newSiege(t)
			qp, err := s.dev.CreateQP(s.pd, engine.QPInit{
				Type: roce.TypeUD, SendCQ: s.cq, RecvCQ: s.cq,
			})
			must(t, err)
			must(t, qp.Start(rcm.QKeyUDP))
			_, err = s.manager.ListenDatagram(s.at, cm.Datagrams{QP: qp})
			must(t, err)
			service := rcm.ServiceIDOf(rcm.PortSpaceUDP, s.at.Port())
			s.flat(t, next, func(src netip.Addr) message {
				s.stranger.n++
				r := &rcm.SIDRREQ{
					RequestID: s.stranger.n, PKey: wire.DefaultPKey, ServiceID: service,
				}
				rcm.IPHeader{
					Src: netip.AddrPortFrom(src, 7), Dst: s.at.Addr(),
				}.Put(r.Private[:])
				return r
			})
			found, err := s.peer.manager.Lookup(within(t, testTimeout), s.peer.pd, s.at, nil)
			must(t, err)
			if found.QPN != qp.QPN() {
				t.Errorf("%+v", found)
			}
		})
	}
}
