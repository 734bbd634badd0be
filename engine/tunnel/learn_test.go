package tunnel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce/clock"
	rcm "xroce/roce/cm"
)

// learns is a configuration that learns peers of the network of all hosts.
func learns(c Config) Config {
	c.Learn = prefixes("192.0.2.0/24")
	return c
}

// asker is who asks from an address, and a station with a number.
func asker(a netip.Addr, station byte) cm.Asker {
	return cm.Asker{
		Addr: netip.AddrPortFrom(a, 49152), Via: rcm.Via{MAC: [6]byte{2, 0, 0, 0, 0, station}},
	}
}

// awaitPeers waits until so many peers are there, and no others.
func (s *site) awaitPeers(n int) {
	s.t.Helper()
	s.await("not so many peers", func(st Stats) bool {
		up := 0
		for _, p := range st.Peers {
			if p.Up {
				up++
			}
		}
		return up == n && len(st.Peers) == n
	})
}

// TestLearned: a hub that names nobody finds those that name it, and nothing goes from one of
// them to the other.
func TestLearned(t *testing.T) {
	for _, tt := range shapes {
		if tt.kind == TUN {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			l.inside = 1400
			hub := l.site(1, 1500, TAP, learns(tt.config))
			spokes := []*site{
				l.site(2, 1500, TAP, tt.config, 1), l.site(3, 1500, TAP, tt.config, 1),
			}
			hub.awaitPeers(2)
			for _, s := range spokes {
				s.awaitUp()
			}
			for i, s := range spokes {
				hello := frame(0xff, byte(2+i), 80)
				s.send(inner.VNet{}, hello)
				if _, got := hub.receive(); !bytes.Equal(got, hello) {
					t.Fatalf("%x came from spoke %d", got, i)
				}
			}
			forAll := frame(0xff, 1, 90)
			hub.send(inner.VNet{}, forAll)
			for i, s := range spokes {
				if _, got := s.receive(); !bytes.Equal(got, forAll) {
					t.Errorf("%x came to spoke %d", got, i)
				}
				if len(s.queue.out) != 0 {
					t.Errorf("spoke %d got more", i)
				}
			}
			unicast := frame(3, 1, 70)
			hub.send(inner.VNet{}, unicast)
			if _, got := spokes[1].receive(); !bytes.Equal(got, unicast) {
				t.Errorf("%x came", got)
			}
			st := hub.Stats()
			if st.Learned-st.Forgotten != 2 || !st.Peers[0].Learned ||
				spokes[0].Stats().Peers[0].Learned {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestForgotten: a peer that was learned and is away for the idle time is forgotten, and what
// the bridge knew of it, and learned again when it is back.
func TestForgotten(t *testing.T) {
	for _, i := range []int{0, 2, 6, 8, 10} {
		tt := shapes[i]
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			c := tt.config
			c.Rekey, c.LearnIdle = 100*time.Millisecond, idle()
			hub := l.site(1, 1500, TAP, learns(c))
			dev, m := l.device(2, 1500)
			for i := range uint64(2) {
				spoke := l.siteOn(dev, m, TAP, c, 1)
				hub.awaitPeers(1)
				spoke.awaitUp()
				hello := frame(0xff, 2, 80)
				spoke.send(inner.VNet{}, hello)
				if _, got := hub.receive(); !bytes.Equal(got, hello) {
					t.Fatalf("%x came", got)
				}
				spoke.end()
				hub.await("not forgotten", func(s Stats) bool {
					return len(s.Peers) == 0 && s.Addresses == 0 && s.Forgotten > i
				})
			}
		})
	}
}

// TestMostLearned: as many peers are learned as there may be and no more, who is refused learns
// why, those that are there stay, and who goes makes room.
func TestMostLearned(t *testing.T) {
	for _, over := range []Over{OverUD, OverRC} {
		t.Run(over.String(), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			l.response = patient // the third asks once
			c := Config{
				Format: encap.EoIB, Over: over, Rekey: 100 * time.Millisecond,
				// Who is not heard of for so long on a busy machine is forgotten, too.
				LearnIdle: idle(),
			}
			of := learns(c)
			of.Learned = 2
			hub := l.site(1, 1500, TAP, of, 9)
			first, second := l.site(2, 1500, TAP, c, 1), l.site(3, 1500, TAP, c, 1)
			count := func(n int) func(Stats) bool {
				return func(s Stats) bool {
					up := 0
					for _, p := range s.Peers {
						if p.Learned && p.Up {
							up++
						}
					}
					return up == n
				}
			}
			hub.await("two are not learned", count(2))
			third := l.site(4, 1500, TAP, c, 1)
			if err := third.tryOnce(third.peers[0]); !errors.Is(err, errRoom) {
				t.Errorf("one more is refused by %v", err)
			}
			if s := hub.Stats(); s.Dropped["too_many_peers"] == 0 || s.Learned-s.Forgotten != 2 {
				t.Errorf("%+v", s)
			}
			second.end()
			third.awaitUp()
			hub.await("not learned when there is room", count(2))
			first.awaitUp()
			// The third one, too, is forgotten and learned again when it is late.
			if s := hub.Stats(); s.Forgotten < 1 || s.Learned != s.Forgotten+2 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestFloodOfHellos: a flood of requests in the names of others, some with a proof that is
// guessed, gets no place and leaves nothing, and a peer that comes amid it is learned.
func TestFloodOfHellos(t *testing.T) {
	for _, key := range []*Key{nil, testKey("one")} {
		t.Run("key "+onOff(map[bool]uint8{true: helloSealed}[key != nil]), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			c := Config{Format: encap.EoIB, Key: key}
			of := learns(c)
			of.Learn = append(of.Learn, prefixes("198.18.0.0/15")...)
			of.Learned = 1
			hub := l.site(1, 1500, TAP, of)
			var ended atomic.Bool
			var flood sync.WaitGroup
			asked := uint64(0)
			flood.Go(func() {
				ask, _, err := hub.ask(&hub.hello, 0)
				for ; err == nil && (!ended.Load() || asked < 2000); asked++ {
					from := binary.BigEndian.AppendUint32(nil,
						198<<24|18<<16|uint32(asked%(1<<17)))
					binary.BigEndian.PutUint32(ask[hub.cookieOff():], uint32(asked))
					if answer, ok := hub.answerLookup(asker(
						netip.AddrFrom4([4]byte(from)), 5), ask); ok {
						t.Errorf("%x is answered %x", from, answer)
						return
					}
				}
			})
			spoke := l.site(2, 1500, TAP, c, 1)
			hub.awaitPeers(1)
			spoke.awaitUp()
			ended.Store(true)
			flood.Wait()
			s := hub.Stats()
			if s.Learned != 1 || s.Dropped["no_cookie"] < asked || s.Peers[0].Addr != addr(2) {
				t.Errorf("after %d: %+v", asked, s)
			}
		})
	}
}

// TestCookie: a proof is of one address, and of some time.
func TestCookie(t *testing.T) {
	l := newLearning(prefixes("192.0.2.0/24"))
	const now = 10*cookieAge + 7
	c := l.cookie(addr(1), 10)
	for name, tt := range map[string]struct {
		at   clock.Time
		of   netip.Addr
		with uint32
		want bool
	}{
		"at once": {now, addr(1), c, true}, "later": {now + cookieAge, addr(1), c, true},
		"too late": {now + 2*cookieAge, addr(1), c, false},
		"another":  {now, addr(2), c, false}, "none": {now, addr(1), 0, false},
		"other bits": {now, addr(1), c ^ 1<<31, false},
	} {
		if got := l.proves(tt.at, tt.of, tt.with); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if newLearning(nil).proves(now, addr(1), c) {
		t.Error("another tunnel takes it")
	}
}

// askAs asks the hub as a tunnel would that then answers nobody, and returns what it is refused
// with, nil when it is not.
func (s *site) askAs(of *Tunnel, from netip.Addr, cookie uint32) (refusal, ask []byte) {
	s.t.Helper()
	ask, _, err := of.ask(&of.hello, cookie)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, ok := s.answerLookup(asker(from, 7), ask)
	if ok {
		return nil, ask
	}
	return answer, ask
}

// learnsSilent has the hub learn a peer that answers nobody, and looks at what is for all before
// that is forgotten, however late: that takes the lock of the bridge.
func (s *site) learnsSilent(from netip.Addr) *peer {
	s.t.Helper()
	s.bridge.Lock()
	defer s.bridge.Unlock()
	refusal, _ := s.askAs(s.Tunnel, from, 0)
	if len(refusal) > helloLen+cookieLen {
		s.t.Errorf("answered with %d bytes", len(refusal))
	}
	if again, _ := s.askAs(s.Tunnel, from, cookieOf(refusal, helloLen)); again != nil {
		s.t.Fatalf("refused with %x", again)
	}
	p := s.roster.Load().byAddr[from]
	if p == nil {
		s.t.Fatal("not learned")
	}
	if dests := s.flood(nil); len(dests) != 0 {
		s.t.Fatalf("what is for all goes to %s", dests[0].addr)
	}
	return p
}

// TestNoAmplifier: who has proved his address, and never answers there, is sent nothing of what
// is for all, and is forgotten.
func TestNoAmplifier(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := learns(Config{Format: encap.EoIB, LearnIdle: idle()})
	hub := l.site(1, 1500, TAP, c)
	hub.await("not running", func(Stats) bool {
		hub.learning.mu.Lock()
		defer hub.learning.mu.Unlock()
		return hub.learning.running != nil
	})
	p := hub.learnsSilent(addr(7))
	for range 10 {
		hub.send(inner.VNet{}, frame(0xff, 1, 1000))
	}
	hub.await("not forgotten", func(s Stats) bool { return len(s.Peers) == 0 && s.Forgotten == 1 })
	if n := p.counts.txPackets.Load(); n != 0 {
		t.Errorf("%d packets were sent to it", n)
	}
}

// TestLearnedKey: with a key nobody gets a place who does not know it, nor with what was recorded
// of one who does, from another address.
func TestLearnedKey(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Key: testKey("one")}
	hub := l.site(1, 1500, TAP, learns(c))
	good := l.site(2, 1500, TAP, c, 9)
	c.Key = testKey("two")
	bad := l.site(3, 1500, TAP, c, 9)
	for _, from := range []*site{bad, good} {
		refusal, _ := hub.askAs(from.Tunnel, addr(7), 0)
		cookie := cookieOf(refusal, helloLen)
		if cookie == 0 {
			t.Fatalf("refused with %x", refusal)
		}
		if from == bad {
			if refusal, _ := hub.askAs(from.Tunnel, addr(7), cookie); refusal == nil {
				t.Error("another key is taken")
			}
			continue
		}
		_, ask, _ := recorded(hub, good, addr(8))
		binary.BigEndian.PutUint32(ask[helloLen+askLen:], cookie)
		if _, ok := hub.answerLookup(asker(addr(7), 7), ask); ok {
			t.Error("what another one asked is taken")
		}
	}
	if s := hub.Stats(); s.Learned != 0 || len(s.Peers) != 0 || s.Dropped["bad_key"] != 2 {
		t.Errorf("%+v", s)
	}
}

// recorded is what a tunnel asks from an address, with a proof of that.
func recorded(hub, of *site, from netip.Addr) (refusal, ask []byte, cookie uint32) {
	refusal, _ = hub.askAs(of.Tunnel, from, 0)
	cookie = cookieOf(refusal, helloLen)
	ask, _, err := of.ask(&of.hello, cookie)
	if err != nil {
		of.t.Fatal(err)
	}
	return refusal, ask, cookie
}

// TestLearnRefused: what cannot be learned from is refused when the tunnel is opened.
func TestLearnRefused(t *testing.T) {
	l := newLAN(t, sim.Faults{})
	dev, m := l.device(1, 1500)
	all := prefixes("0.0.0.0/0")
	for name, tt := range map[string]struct {
		kind InsideKind
		Config
	}{
		"nobody": {TAP, Config{}},
		"no routes": {TUN, Config{
			Format: encap.IPoIB, Learn: all, Peers: []Peer{{Addr: addr(2)}},
		}},
		"a host bit": {TAP, Config{Learn: []netip.Prefix{netip.PrefixFrom(addr(1), 24)}}},
		"no prefix":  {TAP, Config{Learn: make([]netip.Prefix, 1)}},
		"a group":    {TAP, Config{Learn: prefixes("239.0.0.0/8")}},
		"too many":   {TAP, Config{Learn: all, Learned: MaxPeers + 1}},
		"less":       {TAP, Config{Learn: all, Learned: -1, Peers: make([]Peer, 3)}},
		"no time":    {TAP, Config{Learn: all, LearnIdle: -1}},
		"prefixes":   {TAP, Config{Learn: make([]netip.Prefix, maxLearnPrefixes+1)}},
	} {
		if tt.Format == 0 {
			tt.Format = encap.EoIB
		}
		inside := &Inside{Kind: tt.kind, MTU: 1000, Queues: []Queue{newFakeQueue()}}
		if _, err := Open(dev, m, inside, tt.Config); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
