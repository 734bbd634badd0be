package cm_test

import (
	"net/netip"
	"slices"
	"sync"
	"testing"

	"xroce/engine"
	"xroce/engine/capture"
	"xroce/engine/cm"
	rcm "xroce/roce/cm"
	"xroce/roce/wire"
)

// A madTap keeps the last MAD of each kind that was sent, and where to.
type madTap struct {
	mu   sync.Mutex
	mads map[rcm.Attribute][]byte
	to   map[rcm.Attribute]rcm.Via
}

func newMADTap() *madTap {
	return &madTap{mads: map[rcm.Attribute][]byte{}, to: map[rcm.Attribute]rcm.Via{}}
}

func (m *madTap) Frame(dir capture.Direction, head, tail []byte) {
	var p wire.Packet
	if dir != capture.Outbound || p.Decode(head, tail) != wire.OK || p.BTH.DestQP != 1 {
		return
	}
	mad := make([]byte, p.PayloadLen())
	p.CopyPayload(mad)
	h, err := rcm.ParseHeader(mad)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mads[h.Attribute] = mad
	m.to[h.Attribute] = rcm.Via{MAC: p.DstMAC, VLAN: p.Tags.VLAN()}
}

// sent waits for a MAD of a kind.
func (m *madTap) sent(t *testing.T, kind rcm.Attribute) (mad []byte, to rcm.Via) {
	t.Helper()
	waits(t, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		mad, to = slices.Clone(m.mads[kind]), m.to[kind]
		return mad != nil
	})
	return mad, to
}

// TestHangUpOnVLAN: a peer on a VLAN connects to an address that we have there and beside it,
// as the link-local one of a VLAN interface is. It is told on the VLAN that we hang up.
func TestHangUpOnVLAN(t *testing.T) {
	for _, vlan := range []wire.VLAN{
		5, wire.Tags{{TPID: wire.TPIDService, TCI: 100}, {TPID: wire.TPIDCustomer, TCI: 5}}.VLAN(),
	} {
		t.Run(vlan.String(), func(t *testing.T) { testHangUp(t, vlan) })
	}
}

func testHangUp(t *testing.T, vlan wire.VLAN) {
	tap := newMADTap()
	e := engine.Options{Tap: tap, RawPackets: true}
	_, hosts := newWorldAround(t, cm.Options{Linger: -1}, e, func(s *surroundings) engine.Host {
		return &router{s, vlan, make(chan struct{})}
	})
	a, b := hosts[0], hosts[1]
	must(t, a.manager.Close()) // what comes to it is not answered
	at := netip.AddrPortFrom(netip.IPv6Unspecified(), 1)
	s := b.serve(t, at)
	peer := newStranger(t, a.dev, linkLocal(b), b.mac, 1)
	peer.vlan = vlan
	req := peer.request(linkLocal(a))
	peer.send(t, linkLocal(a), req)
	mad, to := tap.sent(t, rcm.AttributeREP)
	there := rcm.Via{MAC: a.mac, VLAN: vlan}
	if to != there {
		t.Fatalf("answered by %+v", to)
	}
	rep, err := rcm.ParseREP(mad)
	must(t, err)
	peer.send(t, linkLocal(a), &rcm.RTU{
		LocalCommID: req.LocalCommID, RemoteCommID: rep.LocalCommID,
	})
	c := s.conn(t)
	if path := c.QP().Query().Path; path.Tags.VLAN() != vlan {
		t.Errorf("the queue pair is on VLAN %s", path.Tags.VLAN())
	}
	c.Close()
	if _, to := tap.sent(t, rcm.AttributeDREQ); to != there {
		t.Errorf("told by %+v", to)
	}
}
