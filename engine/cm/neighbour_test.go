package cm_test

import (
	"net/netip"
	"sync"
	"testing"

	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	rcm "xroce/roce/cm"
)

// asked is how many questions came, of both kinds.
func (s *siege) asked() uint64 {
	return s.counted("cm_rx_msgs_req") + s.counted("cm_rx_msgs_sidr_req")
}

// asks sends so many messages, each from the address that a function says with it, and waits until
// the host has counted them.
func (s *siege) asks(t *testing.T, n int, next func() (netip.Addr, message)) {
	t.Helper()
	before := s.asked()
	for i := range uint64(n) {
		src, m := next()
		s.stranger.send(t, src, m)
		if i%64 == 63 {
			waits(t, func() bool { return s.asked() == before+i+1 })
		}
	}
	waits(t, func() bool { return s.asked() == before+uint64(n) })
}

// TestNeighbourKeepsNobodyOut: a neighbour asks 200 times, and another host has asked once before,
// from its link-local address, which proves nothing. That one is not driven out, nor kept waiting
// until the neighbour has nothing more to ask.
func TestNeighbourKeepsNobodyOut(t *testing.T) {
	// It asks again after two minutes.
	s := newSiegeOf(t, cm.Options{Machine: rcm.Config{ResponseTimeout: 25}})
	ctx := within(t, testTimeout)
	l, err := s.manager.Listen(netip.AddrPortFrom(netip.Addr{}, 2))
	must(t, err)
	dialled := make(chan error, 1)
	go func() {
		c, err := s.peer.manager.Dial(ctx, netip.AddrPortFrom(linkLocal(s.host), 2), s.peer.setup())
		if err == nil {
			c.Close()
		}
		dialled <- err
	}()
	waits(t, func() bool { return l.Waiting() == 1 })
	neighbour := netip.MustParseAddr("192.0.2.77")
	s.stranger.from, s.stranger.port = [6]byte{2, 0, 0, 0, 0, 77}, 2
	_, err = s.network.NewPort(sim.PortConfig{
		MAC: s.stranger.from, MTU: 1500, Addrs: []netip.Addr{neighbour},
	})
	must(t, err)
	s.asks(t, 200, func() (netip.Addr, message) {
		return neighbour, s.stranger.request(neighbour)
	})
	if l.Waiting() < 100 {
		t.Fatalf("%d wait: the neighbour is none", l.Waiting())
	}
	r, err := l.Accept(ctx)
	must(t, err)
	if r.RemoteAddr().Addr() == neighbour {
		t.Fatal("the neighbour comes first")
	}
	_, err = r.Accept(ctx, s.setup())
	must(t, err)
	must(t, <-dialled)
}

// TestWhoIsAskedFor: a station asks more often than there is room, in the name of hosts that are
// not there, and another one has asked once. The next search is for the host of the other one.
func TestWhoIsAskedFor(t *testing.T) {
	for _, lookup := range []bool{false, true} {
		t.Run(map[bool]string{false: "REQ", true: "SIDR_REQ"}[lookup], func(t *testing.T) {
			s := newSiege(t)
			s.offer(t, nil)
			n := uint32(0)
			ask := func(src netip.Addr) message {
				if !lookup {
					return s.stranger.request(src)
				}
				q := s.question(src)
				q.RequestID = 1000 + n
				return q
			}
			flood := func() (netip.Addr, message) {
				n++
				src := numbered(netip.MustParseAddr(nearby), n%200)
				return src, ask(src)
			}
			s.asks(t, 40, flood) // for more than are asked for at once
			waits(t, func() bool { return s.town.asked.Load() == 32 })
			other, flooder := netip.MustParseAddr("192.0.2.250"), s.stranger.from
			s.stranger.from = [6]byte{2, 0, 0, 0, 0, 77}
			s.asks(t, 1, func() (netip.Addr, message) { n++; return other, ask(other) })
			s.stranger.from = flooder
			s.asks(t, 300, flood)
			s.clock.now.Add(int64(roce.Second / 16))
			s.asks(t, 1, flood) // wakes the manager
			waits(t, func() bool { return s.town.asked.Load() == 33 })
			if got := *s.town.lastAsked.Load(); got != other {
				t.Errorf("%s is asked for, not %s", got, other)
			}
		})
	}
}

// TestAnswersAboutNothing: whoever asks again and again about what there is not, faster than the
// manager is served, takes no answers from those who ask for what there is.
func TestAnswersAboutNothing(t *testing.T) {
	stranger := netip.MustParseAddr("192.0.2.66")
	for name, about := range map[string]func(s *siege, n uint32) message{
		"REQ": func(s *siege, _ uint32) message {
			s.stranger.port = 9
			return s.stranger.request(stranger)
		},
		"DREQ": func(_ *siege, n uint32) message {
			return &rcm.DREQ{LocalCommID: n, RemoteCommID: n + 7, RemoteQPN: 3}
		},
		"SIDR_REQ": func(s *siege, n uint32) message {
			q := s.question(stranger)
			q.RequestID = n
			q.ServiceID++
			return q
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSiege(t)
			busy, let := make(chan struct{}), make(chan struct{})
			hold := sync.OnceFunc(func() { close(busy); <-let })
			s.offer(t, func(netip.AddrPort, []byte) bool { hold(); return true })
			s.stranger.send(t, s.peer.v4, s.question(s.peer.v4))
			<-busy
			before, flooder := packets(t, s.dev), s.stranger.from
			const all, each = 1960, 40 // there is room for 2048; every 40th is the peer's
			for n := range uint32(all) {
				if n%each < each-1 {
					s.stranger.post(t, int(n%each), stranger, about(s, n))
					continue
				}
				q := s.question(s.peer.v4)
				q.RequestID = all + n
				s.stranger.from = s.peer.mac
				s.stranger.post(t, each-1, s.peer.v4, q)
				s.stranger.left(t, each)
				s.stranger.from = flooder
			}
			waits(t, func() bool { return packets(t, s.dev) == before+all })
			close(let)
			waits(t, func() bool {
				return s.counted("cm_rx_msgs_sidr_req") >= all/each && s.manager.Usage().MADs == 0
			})
			if n := s.counted("cm_outbox_full"); n != 0 {
				t.Errorf("%d answers were lost", n)
			}
		})
	}
}
