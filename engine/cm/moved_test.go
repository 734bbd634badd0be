package cm_test

import (
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	rcm "xroce/roce/cm"
)

// moveTo gives the host another MAC address, as a failover does: all that it knew is lost.
func (h *host) moveTo(t *testing.T, network *sim.Network, mac [6]byte) {
	t.Helper()
	must(t, h.manager.Close())
	must(t, h.dev.Close())
	port, err := network.NewPort(sim.PortConfig{MAC: mac, MTU: 1500, Addrs: []netip.Addr{h.v4}})
	must(t, err)
	h.mac = mac
	h.dev, err = engine.OpenLink(port, port, engine.Options{Clock: engine.NewSystemClock()})
	must(t, err)
	h.equip(t, cm.Options{})
}

// TestHostMoved: a host that was connected gets another MAC address, and connects again at once:
// what is remembered of it says where it was.
func TestHostMoved(t *testing.T) {
	s := newSiege(t)
	s.connects(t)
	s.peer.moveTo(t, s.network, [6]byte{2, 0, 0, 0, 0, 99})
	s.connects(t)
	if n := s.town.asked.Load(); n != 0 {
		t.Errorf("%d addresses were asked for", n)
	}
}

// TestRouterMovesMeanwhile: a request is answered to a router that is gone, and then its host
// learns of the one that took its place: the answer goes there when it is repeated.
func TestRouterMovesMeanwhile(t *testing.T) {
	// The peer waits 34 s and more before it asks again, and we for its RTU: ours are ahead.
	s := newSiegeOf(t, cm.Options{Machine: rcm.Config{ResponseTimeout: 23}})
	ctx := within(t, testTimeout)
	s.town.gateway.Store(&[6]byte{2, 0, 0, 0, 0, 99})
	setup := s.setup()
	qp, err := s.dev.CreateQP(s.pd, setup.Init)
	must(t, err)
	setup.QP = qp
	accepted, dialled := make(chan error, 1), make(chan error, 1)
	go func() {
		r, err := s.listener.Accept(ctx)
		if err == nil {
			_, err = r.Accept(ctx, setup)
		}
		accepted <- err
	}()
	go func() {
		c, err := s.peer.manager.Dial(ctx, s.at, s.peer.setup())
		if err == nil {
			c.Close()
		}
		dialled <- err
	}()
	waits(t, func() bool { return s.counted("cm_tx_msgs_rep") == 1 })
	s.town.gateway.Store(&s.peer.mac)
	s.town.changes <- struct{}{}
	waits(t, func() bool { return qp.Query().Path.DstMAC == s.peer.mac })
	s.clock.now.Add(int64(60 * roce.Second))           // when the answer is repeated
	s.stranger.send(t, s.v4, s.stranger.request(s.v4)) // is not taken, but wakes the manager
	must(t, <-accepted)
	must(t, <-dialled)
	if n := s.counted("cm_rx_duplicates_req"); n != 0 {
		t.Errorf("the peer had to ask %d times more", n)
	}
}
