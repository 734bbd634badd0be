package cm_test

import (
	"context"
	"encoding/binary"
	"net/netip"
	"testing"

	"xroce/engine/cm"
	"xroce/engine/sim"
	rcm "xroce/roce/cm"
)

// dials has the peer ask for connections until the returned function ends that.
func (s *siege) dials(t *testing.T, n int) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, n)
	for range n {
		go func() {
			_, _ = s.peer.manager.Dial(ctx, s.at, s.peer.setup())
			done <- struct{}{}
		}()
	}
	return func() {
		cancel()
		for range n {
			<-done
		}
	}
}

// patient is a siege whose peer asks again after two minutes, however busy the machine is, and that
// has it behind a router.
func patient(t *testing.T) *siege {
	t.Helper()
	s := newSiegeOf(t, cm.Options{Machine: rcm.Config{ResponseTimeout: 25}})
	s.town.gateway.Store(&s.peer.mac)
	return s
}

// TestStrangerBesideTheClients of a router, which has most of what waits: one stranger, who has
// one request there at any time and whose host nobody proved, is not taken before them each time.
func TestStrangerBesideTheClients(t *testing.T) {
	s := patient(t)
	defer s.dials(t, 3)()
	waits(t, func() bool { return s.listener.Waiting() == 3 })
	for clients, taken := 0, 0; clients < 2; taken++ {
		if taken == 4 {
			t.Fatalf("of %d that were taken %d are clients", taken, clients)
		}
		src := numbered(netip.MustParseAddr(faraway), s.stranger.n)
		before := s.listener.Waiting()
		s.stranger.send(t, src, s.stranger.request(src))
		waits(t, func() bool { return s.listener.Waiting() == before+1 })
		r, err := s.listener.Accept(t.Context())
		must(t, err)
		if r.RemoteAddr().Addr() == s.peer.v4 {
			clients++
		}
		must(t, r.Reject(nil))
	}
}

// neighbour adds one with an address.
func (s *siege) neighbour(t *testing.T, addr netip.Addr) {
	t.Helper()
	_, err := s.network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, 77}, MTU: 1500, Addrs: []netip.Addr{addr},
	})
	must(t, err)
}

// TestStrangersByTheRouter ask in the name of a host that is reached by another way than that of
// the clients whose station they write: these are taken before them.
func TestStrangersByTheRouter(t *testing.T) {
	s := newSiege(t)
	other := netip.MustParseAddr("192.0.2.77")
	s.neighbour(t, other)
	s.stranger.from = s.peer.mac
	for range 3 {
		s.stranger.send(t, other, s.stranger.request(other))
	}
	s.peerComesFirst(t, s.listener, s.at)
}

// TestStationsBesideARouter is TestFloodBesideARouter of a stranger who writes another station into
// each frame, and asks for connections or a datagram service in the names of hosts to which the
// router leads. The client is looked at before it is dropped, however often it is tried.
func TestStationsBesideARouter(t *testing.T) {
	for name, client := range map[string]func(*siege, *testing.T) bool{
		"connection": (*siege).clientConnects, "datagrams": (*siege).clientLooksUp,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits most of the time
			for try := range 4 {
				if !client(patient(t), t) {
					t.Errorf("try %d: nobody looked at the client", try)
				}
			}
		})
	}
}

// stations has requests of such numbers come, 20,000 a second, each of a station and a host of its
// own.
func (s *siege) stations(t *testing.T, first, end uint32, what func(uint32, netip.Addr) message) {
	t.Helper()
	for n := first; n < end; n++ {
		s.clock.now.Add(int64(1e9) / 20_000)
		binary.BigEndian.PutUint32(s.stranger.from[2:], 1000+n)
		src := numbered(netip.MustParseAddr(faraway), n)
		before := s.received()
		s.stranger.send(t, src, what(n, src))
		waits(t, func() bool { return s.received() > before })
	}
}

// clientConnects reports whether a request of the client behind the router is shown.
func (s *siege) clientConnects(t *testing.T) bool {
	what := func(_ uint32, src netip.Addr) message { return s.stranger.request(src) }
	n := uint32(600)
	s.stations(t, 0, n, what)
	for ; s.manager.Usage().Connections == s.listener.Waiting(); n++ {
		s.stations(t, n, n+1, what) // until there is no look to be had at once
	}
	before := s.received()
	defer s.dials(t, 1)()
	waits(t, func() bool { return s.received() > before })
	s.stations(t, n, n+200, what)
	for s.listener.Waiting() > 0 {
		r, err := s.listener.Accept(t.Context())
		must(t, err)
		if r.RemoteAddr().Addr() == s.peer.v4 {
			return true
		}
		must(t, r.Reject(nil))
	}
	return false
}

// clientLooksUp reports whether a request of that client for a datagram service is answered.
func (s *siege) clientLooksUp(t *testing.T) bool {
	s.offer(t, nil)
	what := func(n uint32, src netip.Addr) message {
		q := s.question(src)
		q.RequestID = n
		return q
	}
	s.stations(t, 0, 800, what)
	ask := func() {
		q := s.question(s.peer.v4)
		q.RequestID = 1 << 20
		from := s.stranger.from
		s.stranger.from = s.peer.mac
		before := s.received()
		s.stranger.send(t, s.peer.v4, q)
		waits(t, func() bool { return s.received() > before })
		s.stranger.from = from
	}
	ask()
	s.stations(t, 800, 1200, what)
	// One that was answered is answered again at once.
	const again = "cm_tx_retries_sidr_rep"
	before := s.counted(again)
	ask()
	return s.counted(again) > before
}

// TestNoRouteIsRemembered: a host that is in the neighbour table, and to which no route leads, as
// an ARP request may leave one, is not looked for at each request in its name.
func TestNoRouteIsRemembered(t *testing.T) {
	s := newSiege(t)
	src := netip.MustParseAddr("203.0.113.9")
	s.neighbour(t, src)
	before := s.town.looked.Load()
	for n := range uint64(1000) {
		s.stranger.send(t, src, s.stranger.request(src))
		waits(t, func() bool { return s.received() > n })
	}
	if n := s.town.looked.Load() - before; n > 300 { // 256 looks are to be had at once
		t.Errorf("%d looks for 1000 requests in no time at all", n)
	}
}
