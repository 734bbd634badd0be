package tunnel

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
)

// askedBy is what a peer last asked a site with a key, with the proof of its address.
func (s *site) askedBy(p *peer) []byte {
	p.sessions.mu.Lock()
	defer p.sessions.mu.Unlock()
	return bytes.Clone(p.sessions.ask)
}

// keysOf are the sessions of a peer.
func (s *site) keysOf(p *peer) [2]*session {
	p.sessions.mu.Lock()
	defer p.sessions.mu.Unlock()
	return p.sessions.list
}

// incoming is how many connections of peers a site holds.
func (s *site) incoming() int {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	return len(s.in.conns)
}

// replay sends what was recorded to a peer, from the address that it was recorded of, as somebody
// on the link could, and returns what comes of it.
func (s *site) replay(private []byte) error {
	s.t.Helper()
	to := s.peers[0].addr
	if !s.config.Over.connected() {
		_, err := s.manager.Lookup(s.t.Context(), s.pd, netip.AddrPortFrom(to, s.config.Port),
			private)
		return err
	}
	qp, err := s.createQP(engine.QPInit{
		SendCQ: s.lanes[0].cq, RecvCQ: s.lanes[0].cq, MaxSendWR: 1, MaxRecvWR: 1,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	conn, err := s.manager.DialService(s.t.Context(), to, s.service(), cm.Setup{
		QP: qp, Private: private,
	})
	if err != nil {
		_ = qp.Close()
		return err
	}
	s.t.Cleanup(func() { s.hangUp(conn) })
	return nil
}

// TestReplayedRequest: the very request by which a peer connected is refused when somebody who
// recorded it sends it again, and changes nothing: neither is a connection held for it, nor do
// the keys and the peer become other ones.
func TestReplayedRequest(t *testing.T) {
	for _, over := range []Over{OverRC, OverUC} {
		t.Run(over.String(), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			l.response = patient // each request is counted once
			c := Config{
				Format: encap.EoIB, Over: over, Key: testKey("one"),
				renew: time.Hour, // the keys are those of the first connection
			}
			a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
			a.awaitUp()
			b.awaitUp()
			p := a.peers[0]
			a.await("not known", func(Stats) bool {
				return a.incoming() == 1 && p.instance.Load() == b.hello.instance
			})
			session, held := p.sessions.list, a.incoming()
			for range 20 {
				if err := b.replay(a.askedBy(p)); err == nil {
					t.Fatal("a connection is made for it")
				}
			}
			if n := a.incoming(); n != held {
				t.Errorf("%d connections are held, and %d were before", n, held)
			}
			if p.sessions.list != session {
				t.Error("the keys are other ones")
			}
			if n := a.Stats().Peers[0].Dropped["bad_key"]; n != 20 {
				t.Errorf("counted %d times", n)
			}
			hello := frame(0xff, 2, 70)
			b.send(inner.VNet{}, hello)
			if _, got := a.receive(); !bytes.Equal(got, hello) {
				t.Errorf("%x came", got)
			}
		})
	}
}

// TestReplayedLookup: over UD the last request gets the same answer once more, which may have been
// lost, and changes nothing.
func TestReplayedLookup(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Key: testKey("one")}
	a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
	a.awaitUp()
	b.awaitUp()
	p := a.peers[0]
	connects := a.Stats().Peers[0].Connects
	for done := 0; done < 20; {
		ask, list := a.askedBy(p), a.keysOf(p)
		err := b.replay(ask)
		after := a.keysOf(p)
		if !bytes.Equal(a.askedBy(p), ask) {
			continue // meanwhile the peer has asked by itself, which it does now and then
		}
		done++
		if err != nil {
			t.Fatal(err)
		}
		if after != list {
			t.Fatal("the keys are other ones")
		}
	}
	if a.Stats().Peers[0].Connects != connects {
		t.Error("the peer is another one")
	}
}

// TestReplayedAtRestart: a request that was recorded before an end was started again is refused by
// what runs then, also before its peer has asked it.
func TestReplayedAtRestart(t *testing.T) {
	for _, over := range []Over{OverUD, OverRC, OverUC} {
		t.Run(over.String(), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			c := Config{Format: encap.EoIB, Over: over, Key: testKey("one")}
			dev, m := l.device(1, 1500)
			a := l.siteOn(dev, m, TAP, c, 2)
			other, om := l.device(2, 1500)
			b := l.siteOn(other, om, TAP, c, 1)
			a.awaitUp()
			b.awaitUp()
			a.await("not asked", func(Stats) bool { return a.askedBy(a.peers[0]) != nil })
			recorded := a.askedBy(a.peers[0])
			b.end()
			a.end()
			a = l.siteOn(dev, m, TAP, c, 2)
			attacker := l.siteOn(other, om, TAP, Config{
				Format: encap.EoIB, Over: over, Key: testKey("two"),
			}, 1)
			if err := attacker.replay(recorded); err == nil {
				t.Error("it is taken")
			}
			p := a.peers[0]
			if a.askedBy(p) != nil || p.sessions.list != [2]*session{} || a.incoming() != 0 {
				t.Error("something is held for it")
			}
		})
	}
}
