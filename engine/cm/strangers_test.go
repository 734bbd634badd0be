package cm_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

// A town is a host with routes to the networks of its addresses. It knows who is there, and
// who asks for somebody else waits as long as he likes.
type town struct {
	*router
	looked  atomic.Int64            // how often a route was looked up without asking
	asking  atomic.Int64            // those that wait now
	most    atomic.Int64            // that waited at a time
	asked   atomic.Int64            // those that ever asked
	late    atomic.Int64            // those that waited until their time was over
	distant atomic.Bool             // nobody is a neighbour: there are routes alone
	gateway atomic.Pointer[[6]byte] // to which all routes lead, nil for to each host itself

	lastAsked atomic.Pointer[netip.Addr] // whom somebody asked for last
}

func newTown(s *surroundings) engine.Host { return &town{router: newRouter(s).(*router)} }

func (w *town) Known(_ wire.VLAN, src, dst netip.Addr) (hop engine.Hop, err error) {
	w.looked.Add(1)
	if mac := w.gateway.Load(); mac != nil {
		return engine.Hop{MAC: *mac}, nil
	}
	if _, _, err := w.Source(dst); err != nil {
		return hop, fmt.Errorf("%w: %w", engine.ErrNoRoute, err)
	}
	hop.MAC, err = w.Host.Resolve(context.Background(), src, dst)
	return hop, err
}

func (w *town) HasNeighbour(vlan wire.VLAN, addr netip.Addr) bool {
	return !w.distant.Load() && w.gateway.Load() == nil && w.router.HasNeighbour(vlan, addr)
}

func (w *town) Lookup(vlan wire.VLAN, src, dst netip.Addr) (engine.Hop, error) {
	return w.Known(vlan, src, dst)
}

func (w *town) ResolveOn(
	ctx context.Context, vlan wire.VLAN, src, dst netip.Addr,
) (engine.Hop, error) {
	hop, err := w.Known(vlan, src, dst)
	if err == nil {
		return hop, nil
	}
	w.lastAsked.Store(&dst)
	w.asked.Add(1)
	now := w.asking.Add(1)
	defer w.asking.Add(-1)
	for most := w.most.Load(); now > most && !w.most.CompareAndSwap(most, now); {
		most = w.most.Load()
	}
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		w.late.Add(1)
	}
	return hop, err
}

// A heldClock stands still until it is moved.
type heldClock struct{ now atomic.Int64 }

func (c *heldClock) Now() roce.Time { return roce.Time(c.now.Load()) }

// A siege is a host with strangers around, and a peer.
type siege struct {
	*host
	town     *town
	peer     *host
	stranger *stranger
	clock    heldClock // of the host's manager
	listener *cm.Listener
	at       netip.AddrPort
	network  *sim.Network
}

// newSiege is one in which nobody asks again for some seconds.
func newSiege(t *testing.T) *siege { return newSiegeOf(t, cm.Options{}) }

// newSiegeOf is newSiege of a peer with options.
func newSiegeOf(t *testing.T, peer cm.Options) *siege {
	t.Helper()
	s := new(siege)
	var towns []*town
	kind := func(x *surroundings) engine.Host {
		towns = append(towns, newTown(x).(*town))
		return towns[len(towns)-1]
	}
	network, hosts := newWorldAround(t, peer, engine.Options{}, kind)
	s.host, s.town, s.peer, s.network = hosts[0], towns[0], hosts[1], network
	must(t, s.manager.Close())
	var err error
	s.manager, err = cm.Open(s.dev, cm.Options{Clock: &s.clock})
	must(t, err)
	s.at = netip.AddrPortFrom(s.v4, 1)
	s.listener, err = s.manager.Listen(s.at)
	must(t, err)
	port, err := network.NewPort(sim.PortConfig{MAC: [6]byte{2, 0, 0, 0, 0, 66}, MTU: 1500})
	must(t, err)
	dev, err := engine.OpenLink(port, port, engine.Options{
		Clock: engine.NewSystemClock(), RawPackets: true,
	})
	must(t, err)
	t.Cleanup(func() { must(t, dev.Close()) })
	s.stranger = newStranger(t, dev, s.v4, s.mac, 1)
	return s
}

// flood lets strangers ask, each from an address of its own, and waits until the host has
// counted them.
func (s *siege) flood(t *testing.T, base string, n uint32) {
	t.Helper()
	before := s.received()
	for i := range n {
		src := numbered(netip.MustParseAddr(base), s.stranger.n)
		s.stranger.send(t, src, s.stranger.request(src))
		if i%64 == 63 {
			waits(t, func() bool { return s.received() == before+uint64(i)+1 })
		}
	}
	waits(t, func() bool { return s.received() == before+uint64(n) })
}

// connects lets the peer connect to a loop that accepts one request after the other, which
// must not cost more messages than on a quiet network.
func (s *siege) connects(t *testing.T) {
	t.Helper()
	ctx := within(t, testTimeout)
	accepted := make(chan error, 1)
	go func() {
		r, err := s.listener.Accept(ctx)
		if err == nil {
			_, err = r.Accept(ctx, s.setup())
		}
		accepted <- err
	}()
	c, err := s.peer.manager.Dial(ctx, s.at, s.peer.setup())
	must(t, err)
	must(t, <-accepted)
	if n := s.peer.counted("cm_tx_retries_req"); n != 0 {
		t.Errorf("the peer had to ask %d times more", n)
	}
	c.Close()
}

// nearby are addresses in a network of the host that nobody has, and faraway some that it
// has no route to.
const nearby, faraway = "192.0.2.16", "203.0.113.0"

// TestStrangersNearby: what is claimed to come from addresses on the link that nobody has
// is not shown to the application, and makes the host ask for so many and no more.
func TestStrangersNearby(t *testing.T) {
	s := newSiege(t)
	s.flood(t, "192.0.2.4", 200)
	const burst, aSecond = 32, 16
	if n := s.town.asked.Load(); n > burst {
		t.Errorf("%d addresses were asked for at once", n)
	}
	waits(t, func() bool { return s.town.asked.Load() == burst })
	// Requests that had to make room are not asked for any more.
	waits(t, func() bool { return s.town.asking.Load() == 0 })
	s.clock.now.Add(int64(roce.Second))
	s.flood(t, "192.0.2.4", 200)
	if n := s.town.asked.Load(); n > burst+aSecond {
		t.Errorf("%d addresses were asked for in a second", n)
	}
	if held := s.manager.Usage(); held.HalfOpen > 128 || held.Connections > 128 {
		t.Errorf("held: %+v", held)
	}
	if n := s.listener.Waiting(); n != 0 {
		t.Errorf("%d strangers are shown to the application", n)
	}
	s.connects(t)
	if lost := s.manager.Lost(); lost != (cm.Lost{}) {
		t.Errorf("lost %+v", lost)
	}
}

// TestStrangersFarAway: nobody is asked for an address without a route, and nothing is
// kept.
func TestStrangersFarAway(t *testing.T) {
	s := newSiege(t)
	s.flood(t, faraway, 250)
	waits(t, func() bool { return s.manager.Usage().Connections == 0 })
	if n := s.counted("cm_tx_msgs_rej"); n != 250 {
		t.Errorf("%d were refused", n)
	}
	if n := s.town.asked.Load(); n != 0 {
		t.Errorf("%d addresses were asked for", n)
	}
	s.connects(t)
}

// TestStrangersWithoutListener: who is refused is told by the way that he came, and nobody
// is asked.
func TestStrangersWithoutListener(t *testing.T) {
	s := newSiege(t)
	s.stranger.port = 9
	s.flood(t, nearby, 200)
	waits(t, func() bool { return s.counted("cm_no_listener") == 200 })
	waits(t, func() bool {
		return packets(t, s.stranger.dev) == 200
	})
	if n := s.town.asked.Load(); n != 0 {
		t.Errorf("%d addresses were asked for", n)
	}
	if lost := s.manager.Lost(); lost != (cm.Lost{}) {
		t.Errorf("lost %+v", lost)
	}
	s.connects(t)
}

// TestStrangerInMyName: what another station sends in the name of the host itself is not
// taken.
func TestStrangerInMyName(t *testing.T) {
	s := newSiege(t)
	s.stranger.send(t, s.v4, s.stranger.request(s.v4))
	waits(t, func() bool { return s.manager.Lost().Martian == 1 })
	if n := s.listener.Waiting(); n != 0 {
		t.Errorf("%d requests wait", n)
	}
	s.connects(t)
}

// TestStrangerInThePeersName: a stranger who asks in the name of a peer, from its own station, is
// not answered, and so cannot confirm. The answer goes to the peer, who did not ask and refuses;
// nor does the connection change that it has.
func TestStrangerInThePeersName(t *testing.T) {
	s := newSiege(t)
	ctx := within(t, testTimeout)
	accept := func() <-chan *cm.Conn {
		conns := make(chan *cm.Conn, 1)
		go func() {
			r, err := s.listener.Accept(ctx)
			must(t, err)
			c, _ := r.Accept(ctx, s.setup())
			conns <- c
		}()
		return conns
	}
	accepted := accept()
	c, err := s.peer.manager.Dial(ctx, s.at, s.peer.setup())
	must(t, err)
	d := <-accepted
	accepted = accept()
	s.stranger.send(t, s.peer.v4, s.stranger.request(s.peer.v4))
	if stolen := <-accepted; stolen != nil {
		t.Error("the stranger is connected")
	}
	if n := s.counted("cm_tx_msgs_rep"); n != 2 {
		t.Errorf("%d REPs were sent", n)
	}
	if n := packets(t, s.stranger.dev); n != 0 {
		t.Errorf("%d packets went to the stranger", n)
	}
	if got := d.QP().Query().Path.DstMAC; got != s.peer.mac {
		t.Errorf("the peer's connection goes to % x", got)
	}
	d.Close()
	over(t, c.Done()) // the peer was told
	c.Close()
}

// TestLookupInThePeersName: who looks up a datagram service in the name of a peer does not learn
// of it, also not by asking again.
func TestLookupInThePeersName(t *testing.T) {
	s := newSiege(t)
	s.offer(t, nil)
	for range 2 {
		s.stranger.send(t, s.peer.v4, s.question(s.peer.v4))
	}
	waits(t, func() bool { return s.counted("cm_tx_retries_sidr_rep") == 1 })
	waits(t, func() bool { return s.peer.counted("cm_rx_msgs_sidr_rep") == 2 })
	if n := packets(t, s.stranger.dev); n != 0 {
		t.Errorf("%d packets went to the stranger", n)
	}
}

// TestLookupWithoutRoute: who looks up a datagram service from an address without a route is
// refused, whoever it is, and nobody is asked.
func TestLookupWithoutRoute(t *testing.T) {
	s := newSiege(t)
	s.offer(t, func(netip.AddrPort, []byte) bool {
		t.Error("somebody without a route may know")
		return true
	})
	src := netip.MustParseAddr(faraway)
	s.stranger.send(t, src, s.question(src))
	waits(t, func() bool { return packets(t, s.stranger.dev) == 1 })
	if n := s.counted("cm_tx_msgs_sidr_rep"); n != 1 {
		t.Errorf("%d were answered", n)
	}
	if n := s.town.asked.Load(); n != 0 {
		t.Errorf("%d addresses were asked for", n)
	}
}

// TestStrangersComeLast: a request in the name of a neighbour, from another station, waits
// until those of neighbours were accepted.
func TestStrangersComeLast(t *testing.T) {
	s := newSiege(t)
	for range 3 {
		s.stranger.send(t, s.peer.v4, s.stranger.request(s.peer.v4))
	}
	s.peerComesFirst(t, s.listener, s.at)
}

// TestManyOfAStation: of neighbours, who has asked for one connection is accepted before one who
// has asked for many, or for many of whom a router asks.
func TestManyOfAStation(t *testing.T) {
	s := newSiege(t)
	other := netip.MustParseAddr("192.0.2.77")
	s.stranger.from = [6]byte{2, 0, 0, 0, 0, 77}
	_, err := s.network.NewPort(sim.PortConfig{
		MAC: s.stranger.from, MTU: 1500, Addrs: []netip.Addr{other},
	})
	must(t, err)
	for range 3 {
		s.stranger.send(t, other, s.stranger.request(other))
	}
	s.peerComesFirst(t, s.listener, s.at)
}

// peerComesFirst has the peer ask a listener at which three strangers wait: it is accepted
// before them.
func (s *siege) peerComesFirst(t *testing.T, l *cm.Listener, at netip.AddrPort) {
	t.Helper()
	waits(t, func() bool { return l.Waiting() == 3 })
	ctx, cancel := context.WithCancel(t.Context())
	dialled := make(chan struct{})
	go func() {
		defer close(dialled)
		_, _ = s.peer.manager.Dial(ctx, at, s.peer.setup())
	}()
	waits(t, func() bool { return l.Waiting() == 4 })
	for i := range 4 {
		r, err := l.Accept(ctx)
		must(t, err)
		if peers := r.RemoteAddr().Port() != 7; peers != (i == 0) {
			t.Errorf("request %d is of the peer (%v)", i, peers)
		}
		must(t, r.Reject(nil))
	}
	cancel()
	<-dialled
}

// TestEvictedRequest accepts a request that had to make room: nothing is made for it.
func TestEvictedRequest(t *testing.T) {
	s := newSiege(t)
	ctx := within(t, testTimeout)
	s.stranger.send(t, s.peer.v4, s.stranger.request(s.peer.v4))
	r, err := s.listener.Accept(ctx)
	must(t, err)
	for range 200 {
		s.stranger.send(t, s.peer.v4, s.stranger.request(s.peer.v4))
	}
	waits(t, func() bool { return s.counted("cm_backlog_dropped") > 0 })
	setup := s.setup()
	setup.Prepare = func(*engine.QP) error {
		t.Error("a queue pair was made")
		return nil
	}
	if _, err := r.Accept(ctx, setup); err == nil {
		t.Error("a request that made room was accepted")
	}
}

// TestKnownBeforeTheNext: who asks when all places are taken keeps his, also when the next request
// comes with it, of a host that has more: what is known of him is looked at before that.
func TestKnownBeforeTheNext(t *testing.T) {
	s := newSiege(t)
	often, other := s.peer.v4, netip.MustParseAddr("192.0.2.77")
	_, err := s.network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, 77}, MTU: 1500, Addrs: []netip.Addr{other},
	})
	must(t, err)
	for range 200 {
		s.stranger.send(t, often, s.stranger.request(often))
	}
	s.stranger.send(t, other, s.stranger.request(other))
	waits(t, func() bool { return s.received() == 201 })
	const times = 50
	for i := range times {
		pair := []netip.Addr{other, often}
		s.clock.now.Add(int64(10 * roce.Millisecond)) // so there is a look for each
		s.stranger.burst(t, len(pair), func() netip.Addr {
			next := pair[0]
			pair = pair[1:]
			return next
		})
		waits(t, func() bool { return s.received() == 203+2*uint64(i) })
	}
	waiting := 0
	for range s.listener.Waiting() {
		r, err := s.listener.Accept(t.Context())
		must(t, err)
		if r.RemoteAddr().Addr() == other {
			waiting++
		}
	}
	if waiting != 1+times {
		t.Errorf("%d requests wait, want %d", waiting, 1+times)
	}
}

// TestEvictedSearch: with a request that makes room ends the search for who sent it.
func TestEvictedSearch(t *testing.T) {
	for range 10 {
		s := newSiege(t)
		began := time.Now()
		s.flood(t, nearby, 20)
		waits(t, func() bool { return s.town.asked.Load() == 20 })
		s.flood(t, faraway, 400)
		waits(t, func() bool { return s.town.asking.Load() == 0 })
		switch late := s.town.late.Load(); {
		case late == 0:
			return
		case time.Since(began) < cm.SearchTime:
			t.Fatalf("%d searches went on until their time was over", late)
		}
	}
	t.Error("all searches had no time left when room was made")
}
