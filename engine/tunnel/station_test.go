package tunnel

import (
	"net/netip"
	"testing"

	"xroce/encap"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
)

// TestStationTakesSomePlaces: a host on the link that has, or says that it has, all addresses of a
// prefix, and hears what is sent to them, gets a quarter of the places and no more, so that others
// find one. With a key there is no such bound: he would have to know it.
func TestStationTakesSomePlaces(t *testing.T) {
	for _, key := range []*Key{nil, testKey("one")} {
		t.Run("key "+onOff(map[bool]uint8{true: helloSealed}[key != nil]), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			c := Config{Format: encap.EoIB, Key: key}
			of := learns(c)
			of.Learned = 12
			hub := l.site(1, 1500, TAP, of)
			other := l.site(2, 1500, TAP, c, 1)
			hub.awaitPeers(1)
			places := 0
			for n := byte(100); n < 120; n++ {
				refusal, _ := hub.askAs(other.Tunnel, addr(n), 0)
				cookie := cookieOf(refusal, helloLen)
				if again, _ := hub.askAs(other.Tunnel, addr(n), cookie); again == nil {
					places++
				} else if h, err := parseHello(again); err != nil || h.flags&helloFull == 0 {
					t.Errorf("refused with %x", again)
				}
			}
			want, counted := 3, uint64(17)
			if key != nil {
				want, counted = 11, 0 // all but that of the other
			}
			if n := hub.Stats().Dropped["too_many_at_station"]; places != want || n != counted {
				t.Errorf("it has %d places, want %d; counted %d", places, want, n)
			}
			if key == nil {
				third := l.site(3, 1500, TAP, c, 1)
				third.awaitUp()
			}
		})
	}
}

// TestStationOnTheWire: of connections that a host really asks for from its many addresses, as many
// are taken as one station may have.
func TestStationOnTheWire(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	l.response = patient // each request is counted once
	c := Config{Format: encap.EoIB, Over: OverRC}
	of := learns(c)
	of.PerStation = 2
	hub := l.site(1, 1500, TAP, of)
	port, err := l.network.NewPort(sim.PortConfig{
		Name: "xr0", MAC: [6]byte{2, 0, 0, 0, 0, 5}, MTU: 1500,
		Addrs: []netip.Addr{addr(5), addr(6), addr(7), addr(8), addr(9)},
	})
	if err != nil {
		t.Fatal(err)
	}
	dev, m := l.deviceOn(port, port, engine.Options{})
	many := l.siteOn(dev, m, TAP, c, 99)
	for _, a := range port.Port().Addrs {
		many.askFrom(a, addr(1))
	}
	s := hub.Stats()
	if s.Learned-s.Forgotten != 2 || s.Dropped["too_many_at_station"] != 3 {
		t.Errorf("%+v", s)
	}
}

// askFrom asks a hub for a connection from one of several addresses, with a proof of it, and gives
// up what comes of that.
func (s *site) askFrom(from, hub netip.Addr) {
	s.t.Helper()
	p := newPeer(Peer{Addr: hub}, 1, 1)
	for range 2 { // the first is for the proof
		ask, _, err := s.ask(s.greeting(p), p.cookie.Load())
		if err != nil {
			s.t.Fatal(err)
		}
		qp, err := s.createQP(engine.QPInit{
			SendCQ: s.lanes[0].cq, RecvCQ: s.lanes[0].cq, MaxSendWR: 1, MaxRecvWR: 1,
		})
		if err != nil {
			s.t.Fatal(err)
		}
		conn, err := s.manager.DialService(s.t.Context(), hub, s.service(), cm.Setup{
			QP: qp, Private: ask, LocalAddr: from,
		})
		if err == nil {
			s.hangUp(conn)
			return
		}
		_ = qp.Close()
		_ = s.explain(p, err)
	}
}
