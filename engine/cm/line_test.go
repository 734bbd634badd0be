package cm_test

import (
	"context"
	"testing"

	"xroce/roce"
)

// TestStrangerAsksFirst: a station that asks all the time asks in the name of a peer, too,
// before the peer does. The peer waits no longer for that: it is its turn before that of
// another station that asks less often than the first, but more often than the peer.
func TestStrangerAsksFirst(t *testing.T) {
	s := newSiege(t)
	s.flood(t, faraway, 256) // all the looks there are
	s.town.distant.Store(true)
	s.stranger.send(t, s.peer.v4, s.stranger.request(s.peer.v4))
	waits(t, func() bool { return s.received() == 257 })
	s.flood(t, nearby, 20)
	before := s.received()
	ctx, cancel := context.WithCancel(within(t, testTimeout))
	dialled := make(chan struct{})
	go func() {
		defer close(dialled)
		_, _ = s.peer.manager.Dial(ctx, s.at, s.peer.setup())
	}()
	waits(t, func() bool { return s.received() > before })
	s.stranger.from[5]++
	s.flood(t, nearby, 5)
	if n := s.listener.Waiting(); n != 0 {
		t.Fatalf("%d requests were looked for at once", n)
	}
	s.clock.now.Add(int64(roce.Second / 1024 * 3 / 2)) // for one turn
	s.stranger.port = 9
	s.flood(t, nearby, 1) // wakes the manager
	waits(t, func() bool { return s.listener.Waiting() == 2 })
	r, err := s.listener.Accept(ctx)
	must(t, err)
	if r.RemoteAddr().Port() == 7 {
		t.Error("the stranger comes first")
	}
	must(t, r.Reject(nil))
	cancel()
	<-dialled
}

// TestRareStationComesFirst: the turn is that of who asks rarely, not of who asked first.
func TestRareStationComesFirst(t *testing.T) {
	s := newSiege(t)
	s.flood(t, faraway, 256) // all the looks there are
	s.town.distant.Store(true)
	s.flood(t, nearby, 20)
	before := s.received()
	ctx, cancel := context.WithCancel(within(t, testTimeout))
	dialled := make(chan struct{})
	go func() {
		defer close(dialled)
		_, _ = s.peer.manager.Dial(ctx, s.at, s.peer.setup())
	}()
	waits(t, func() bool { return s.received() > before })
	if n := s.listener.Waiting(); n != 0 {
		t.Fatalf("%d requests were looked for at once", n)
	}
	s.clock.now.Add(int64(roce.Second / 1024 * 3 / 2)) // for one turn
	s.flood(t, nearby, 1)                              // wakes the manager
	waits(t, func() bool { return s.listener.Waiting() == 1 })
	r, err := s.listener.Accept(ctx)
	must(t, err)
	if r.RemoteAddr().Addr() != s.peer.v4 {
		t.Errorf("%s comes first", r.RemoteAddr())
	}
	must(t, r.Reject(nil))
	cancel()
	<-dialled
}
