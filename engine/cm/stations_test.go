package cm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	rcm "xroce/roce/cm"
	"xroce/roce/wire"
)

// TestNoStation: frames from MAC addresses that no station has, all zeros or a group, are not
// taken. There is nobody to answer to: were it looked for, strangers had neighbours asked for
// at any rate; and an answer to a group would go to all.
func TestNoStation(t *testing.T) {
	for name, mac := range map[string][6]byte{
		"zero": {}, "broadcast": {255, 255, 255, 255, 255, 255}, "group": {1, 0, 0x5e, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSiege(t)
			s.stranger.from, s.stranger.port = mac, 9
			s.flood(t, nearby, 100)
			if n := s.manager.Lost().Martian; n != 100 {
				t.Errorf("%d were taken", 100-n)
			}
			if n := s.town.asked.Load(); n != 0 {
				t.Errorf("%d addresses were asked for", n)
			}
			if n := packets(t, s.stranger.dev); n != 0 {
				t.Errorf("%d answers came", n)
			}
			s.connects(t)
		})
	}
}

// offer makes a datagram service that a function says who may know of, nil for everybody.
func (s *siege) offer(t *testing.T, allow func(netip.AddrPort, []byte) bool) {
	t.Helper()
	qp, err := s.dev.CreateQP(s.pd, engine.QPInit{Type: roce.TypeUD, SendCQ: s.cq, RecvCQ: s.cq})
	must(t, err)
	_, err = s.manager.ListenDatagram(s.at, cm.Datagrams{QP: qp, Allow: allow})
	must(t, err)
}

// question asks for that service, in the name of an address.
func (s *siege) question(src netip.Addr) *rcm.SIDRREQ {
	q := &rcm.SIDRREQ{
		RequestID: 7, PKey: wire.DefaultPKey,
		ServiceID: rcm.ServiceIDOf(rcm.PortSpaceUDP, s.at.Port()),
	}
	rcm.IPHeader{Src: netip.AddrPortFrom(src, 7), Dst: s.v4}.Put(q.Private[:])
	return q
}

// hold makes the manager wait, so that what comes meanwhile comes at once. The returned
// function lets it go on.
func (s *siege) hold(t *testing.T) (release func()) {
	t.Helper()
	busy, let := make(chan struct{}), make(chan struct{})
	s.offer(t, func(netip.AddrPort, []byte) bool {
		close(busy)
		<-let
		return false
	})
	s.stranger.send(t, s.peer.v4, s.question(s.peer.v4))
	<-busy
	return func() { close(let) }
}

// TestStationsAtOnce: a peer asks, and before it is served strangers do, each from a station
// of its own. They make room before the peer does, although all came at once.
func TestStationsAtOnce(t *testing.T) {
	s := newSiege(t)
	ctx := within(t, testTimeout)
	release := s.hold(t)
	before := packets(t, s.dev)
	dialled := make(chan error, 1)
	go func() {
		c, err := s.peer.manager.Dial(ctx, s.at, s.peer.setup())
		if err == nil {
			c.Close()
		}
		dialled <- err
	}()
	waits(t, func() bool { return packets(t, s.dev) == before+1 })
	const strangers = 200
	for i := uint32(0); i < strangers; {
		s.stranger.burst(t, 50, func() netip.Addr {
			i++
			binary.BigEndian.PutUint32(s.stranger.from[2:], i+1000)
			return numbered(netip.MustParseAddr(nearby), i)
		})
	}
	waits(t, func() bool { return packets(t, s.dev) == before+1+strangers })
	release()
	r, err := s.listener.Accept(ctx)
	must(t, err)
	_, err = r.Accept(ctx, s.setup())
	must(t, err)
	must(t, <-dialled)
	if n := s.peer.counted("cm_tx_retries_req"); n != 0 {
		t.Errorf("the peer had to ask %d times more", n)
	}
}

// TestWaysOfOneHost: requests from one host wait for the same search, and each gets the way
// that it asked for.
func TestWaysOfOneHost(t *testing.T) {
	s := newSiege(t)
	s.flood(t, faraway, 256) // all the looks there are
	s.town.distant.Store(true)
	classes := []uint8{0, 8, 0, 16}
	for _, class := range classes {
		r := s.stranger.request(s.peer.v4)
		r.Primary.TrafficClass = class
		s.stranger.send(t, s.peer.v4, r)
	}
	waits(t, func() bool { return s.received() == 256+uint64(len(classes)) })
	if n := s.listener.Waiting(); n != 0 {
		t.Fatalf("%d requests were looked for at once", n)
	}
	s.clock.now.Add(int64(roce.Second))
	s.stranger.port = 9
	s.flood(t, nearby, 1) // wakes the manager
	ctx, cancel := context.WithCancel(within(t, testTimeout))
	defer cancel()
	for i, class := range classes {
		r, err := s.listener.Accept(ctx)
		must(t, err)
		setup := s.setup()
		qp, err := s.dev.CreateQP(s.pd, setup.Init)
		must(t, err)
		setup.QP = qp
		// The peer is told, and has not asked.
		if _, err := r.Accept(ctx, setup); !errors.As(err, new(*cm.RejectedError)) {
			t.Fatalf("accepted: %v", err)
		}
		if got := qp.Query().Path.TClass; got != class {
			t.Errorf("request %d: traffic class %d, want %d", i, got, class)
		}
		qp.Close()
	}
}

// TestInventedNeighbours: strangers that ask from stations that are not there, and from the
// link-local addresses that follow from those, wait until those who were looked for were
// accepted: that the way to them is known says nothing.
func TestInventedNeighbours(t *testing.T) {
	s := newSiege(t)
	at := netip.AddrPortFrom(s.v6, 2)
	l, err := s.manager.Listen(netip.AddrPortFrom(netip.IPv6Unspecified(), 2))
	must(t, err)
	s.stranger.target, s.stranger.port = linkLocal(s.host), 2
	for i := range 3 {
		s.stranger.from = [6]byte{2, 0, 0, 0, 1, byte(i)}
		src := wire.LinkLocalGID(s.stranger.from).Addr()
		s.stranger.send(t, src, s.stranger.request(src))
	}
	s.peerComesFirst(t, l, at)
}

// TestEvictedInTheMiddle accepts a request that makes room while its queue pair is made: that
// one is not left connected to a stranger.
func TestEvictedInTheMiddle(t *testing.T) {
	s := newSiege(t)
	ctx := within(t, testTimeout)
	s.stranger.send(t, s.peer.v4, s.stranger.request(s.peer.v4))
	r, err := s.listener.Accept(ctx)
	must(t, err)
	setup := s.setup()
	setup.QP, err = s.dev.CreateQP(s.pd, setup.Init)
	must(t, err)
	defer setup.QP.Close()
	setup.Prepare = func(*engine.QP) error {
		for range 200 {
			s.stranger.send(t, s.peer.v4, s.stranger.request(s.peer.v4))
		}
		waits(t, func() bool { return s.counted("cm_backlog_dropped") > 0 })
		return nil
	}
	if _, err := r.Accept(ctx, setup); err == nil {
		t.Error("a request that made room was accepted")
	}
	if state := setup.QP.State(); state != roce.StateErr {
		t.Errorf("the queue pair is in %s", state)
	}
}

// TestSearchesForOurOwn: however many strangers are looked for, a peer is told at once that a
// connection is over, to whom the way has to be looked for again.
func TestSearchesForOurOwn(t *testing.T) {
	s := newSiege(t)
	ctx := within(t, testTimeout)
	accepted := make(chan *cm.Conn, 1)
	go func() {
		r, err := s.listener.Accept(ctx)
		must(t, err)
		c, err := r.Accept(ctx, s.setup())
		must(t, err)
		accepted <- c
	}()
	c, err := s.peer.manager.Dial(ctx, s.at, s.peer.setup())
	must(t, err)
	accepts := <-accepted
	for range 2 {
		s.flood(t, nearby, 64)
		s.clock.now.Add(int64(60 * roce.Second)) // routes are forgotten, too
	}
	accepts.Close()
	over(t, c.Done())
	if n := s.manager.Lost().Resolving; n != 0 {
		t.Errorf("%d messages were lost", n)
	}
	if n := s.town.most.Load(); n < 32 || n > 48 {
		t.Errorf("strangers had %d of 64 searches, not 32 to 48", n)
	}
}
