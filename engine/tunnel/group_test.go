package tunnel

import (
	"bytes"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

// theGroup is that of the tests.
var theGroup = netip.MustParseAddr("239.192.7.7")

// groupFrames counts the frames to the group that come to the port of the host with a number.
func (l *lan) groupFrames(n byte) *atomic.Int64 {
	var count atomic.Int64
	to := wire.GIDFromAddr(theGroup).MulticastMAC(wire.FramingV2IPv4)
	l.network.Observe(func(e *sim.Event) {
		if e.Kind == sim.Sent && e.To[5] == n && [6]byte(e.Frame) == to {
			count.Add(1)
		}
	})
	return &count
}

// TestGroup: what is for all peers, and for an address that is not known, is one packet for all
// of them, and what is for a known one goes to its peer alone.
func TestGroup(t *testing.T) {
	for _, format := range []encap.Format{encap.EoIB, encap.VNIC} {
		t.Run(format.String(), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			frames := l.groupFrames(2)
			c := Config{Format: format, Group: theGroup, Segment: 3}
			a := l.site(1, 1500, TAP, c, 2, 3)
			others := []*site{l.site(2, 1500, TAP, c, 1, 3), l.site(3, 1500, TAP, c, 1, 2)}
			for _, s := range append(others, a) {
				s.awaitUp()
			}
			group := frame(0xff, 1, 300)
			copy(group, []byte{1, 0, 0x5e, 0, 0, 0xfb})
			list := [][]byte{
				frame(0xff, 1, 60), group, frame(99, 1, 200), frame(0xff, 1, 1514),
				frame(0xff, 1, 5000),
			}
			for i, datagram := range list {
				a.send(inner.VNet{}, datagram)
				for _, s := range others {
					if _, got := s.receive(); !bytes.Equal(got, datagram) {
						t.Errorf("frame %d: %x came", i, got[:20])
					}
				}
			}
			// What was sent is counted after it has left.
			a.await("not counted", func(s Stats) bool {
				return s.Group.Up && s.Group.TxDatagrams == uint64(len(list))
			})
			st := a.Stats()
			if st.Peers[0].TxDatagrams+st.Peers[1].TxDatagrams != 0 ||
				st.Group.TxPackets != uint64(frames.Load()) {
				t.Errorf("%+v, group %+v, %d frames", st, st.Group, frames.Load())
			}
			answer := frame(1, 2, 100)
			others[0].send(inner.VNet{}, answer)
			if _, got := a.receive(); !bytes.Equal(got, answer) {
				t.Errorf("%x came", got[:20])
			}
			others[0].await("not counted", func(s Stats) bool {
				return s.Peers[0].TxDatagrams == 1
			})
			st = others[0].Stats()
			if st.Group.TxDatagrams != 0 || st.Group.RxPackets != a.Stats().Group.TxPackets {
				t.Errorf("%+v, group %+v", st, st.Group)
			}
			for _, s := range append(others, a) {
				if n := len(s.queue.out); n != 0 || len(s.Stats().Dropped) != 0 {
					t.Errorf("%d frames more: %+v", n, s.Stats())
				}
			}
		})
	}
}

// addr6 is the address of a host that has one of IPv6.
func addr6(n byte) netip.Addr { return netip.AddrFrom16([16]byte{0xfd, 0x99, 15: n}) }

// TestGroupIPv6: what is for all goes to a group of IPv6 once, also to the broadcast group of
// IPoIB, by its Ethernet address, and comes from peers that have addresses of IPv6.
func TestGroupIPv6(t *testing.T) {
	for _, text := range []string{"ff15::7:7", "ff12:401b:ffff::ffff:ffff"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			of := netip.MustParseAddr(text)
			to := wire.GIDFromAddr(of).MulticastMAC(wire.FramingV2IPv6)
			if to[0] != 0x33 || to[1] != 0x33 {
				t.Fatalf("the Ethernet address of the group is %x", to)
			}
			var frames atomic.Int64
			l.network.Observe(func(e *sim.Event) {
				if e.Kind == sim.Sent && e.To[5] == 2 && [6]byte(e.Frame) == to {
					frames.Add(1)
				}
			})
			var sites []*site
			for n := byte(1); n <= 3; n++ {
				dev, m := l.deviceAt(n, 1500, engine.Options{}, addr6(n))
				c := Config{Format: encap.EoIB, Group: of}
				for p := byte(1); p <= 3; p++ {
					if p != n {
						c.Peers = append(c.Peers, Peer{Addr: addr6(p)})
					}
				}
				sites = append(sites, l.siteOn(dev, m, TAP, c))
			}
			for _, s := range sites {
				s.awaitUp()
			}
			forAll := frame(0xff, 1, 300)
			sites[0].send(inner.VNet{}, forAll)
			for _, s := range sites[1:] {
				if _, got := s.receive(); !bytes.Equal(got, forAll) {
					t.Errorf("%x came", got[:20])
				}
			}
			sites[0].await("not one packet to the group", func(s Stats) bool {
				return s.Group.TxPackets == 1 && frames.Load() == 1 &&
					s.Peers[0].TxPackets+s.Peers[1].TxPackets == 0
			})
		})
	}
}

// TestGroupOfHub: a hub that learns its peers sends what is for all once; a peer of the hub
// takes nothing from the group that comes from a peer of the hub which is none of its own.
func TestGroupOfHub(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Group: theGroup}
	hub := l.site(1, 1500, TAP, learns(c))
	spokes := []*site{l.site(2, 1500, TAP, c, 1), l.site(3, 1500, TAP, c, 1)}
	hub.awaitPeers(2)
	for _, s := range spokes {
		s.awaitUp()
	}
	forAll := frame(0xff, 1, 90)
	hub.send(inner.VNet{}, forAll)
	for _, s := range spokes {
		if _, got := s.receive(); !bytes.Equal(got, forAll) {
			t.Errorf("%x came", got)
		}
	}
	hub.await("not one packet", func(s Stats) bool {
		return s.Group.TxDatagrams == 1 && s.Group.TxPackets == 1
	})
	other := frame(0xff, 2, 91)
	spokes[0].send(inner.VNet{}, other)
	if _, got := hub.receive(); !bytes.Equal(got, other) {
		t.Errorf("%x came", got)
	}
	spokes[1].await("not counted", func(s Stats) bool { return s.Group.Dropped["stranger"] == 1 })
	if n := len(spokes[1].queue.out); n != 0 {
		t.Errorf("%d frames of another spoke came", n)
	}
}

// TestGroupStranger: what a host sends to the group that is no peer, or one that was not found,
// or is of another segment, goes nowhere and is counted.
func TestGroupStranger(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Group: theGroup}
	a := l.site(1, 1500, TAP, c, 2, 4)
	b := l.site(2, 1500, TAP, c, 1)
	b.awaitUp()
	a.await("not found", func(s Stats) bool { return s.Peers[0].Up })
	for _, n := range []byte{3, 4} {
		dev, _ := l.device(n, 1500)
		l.toGroup(dev, groupQKey, frame(0xff, n, 100))
		l.toGroup(dev, groupQKey|5, frame(0xff, n, 100)) // of a segment that is not ours
	}
	a.await("not counted", func(s Stats) bool {
		return s.Group.Dropped["stranger"] == 1 && s.Peers[1].Dropped["no_peer"] == 1
	})
	hello := frame(0xff, 2, 100)
	b.send(inner.VNet{}, hello)
	if _, got := a.receive(); !bytes.Equal(got, hello) {
		t.Errorf("%x came", got)
	}
	if s := a.Stats(); s.Group.RxPackets != 3 || len(a.queue.out) != 0 {
		t.Errorf("%+v, %+v", s, s.Group)
	}
}

// toGroup sends a frame to the group from a device that has no tunnel.
func (l *lan) toGroup(dev *engine.Device, qkey uint32, b []byte) {
	l.t.Helper()
	pd := dev.AllocPD()
	cq, err := dev.CreateCQ(4)
	if err != nil {
		l.t.Fatal(err)
	}
	qp, err := dev.CreateQP(pd, engine.QPInit{
		Type: roce.TypeUD, SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1,
	})
	if err == nil {
		err = qp.Start(0)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	defer qp.Close()
	index, err := dev.SourceGID(theGroup)
	if err != nil {
		l.t.Fatal(err)
	}
	ah, err := dev.CreateAH(l.t.Context(), pd, engine.AddressVector{
		DGID: wire.GIDFromAddr(theGroup), SGIDIndex: index,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	mr, err := dev.RegMR(pd, append([]byte{0xc0, 0, 0, 0}, b...), 0)
	if err != nil {
		l.t.Fatal(err)
	}
	err = qp.PostSend(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled, AH: ah, RemoteQPN: wire.MulticastQP,
		RemoteQKey: qkey, SGList: []roce.SGE{mr.SGE(0, 4+len(b))},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	var wcs [1]roce.Completion
	if n, err := cq.Wait(l.t.Context(), wcs[:]); n != 1 || err != nil {
		l.t.Fatal(n, err)
	}
}

// TestOtherGroup: ends with different groups, or one with none, refuse each other and say why.
func TestOtherGroup(t *testing.T) {
	l := newLAN(t, sim.Faults{})
	l.response = patient // it asks each once
	a := l.site(1, 1500, TAP, Config{Format: encap.EoIB, Group: theGroup}, 2, 3)
	l.site(2, 1500, TAP, Config{Format: encap.EoIB}, 1)
	l.site(3, 1500, TAP, Config{Format: encap.EoIB, Group: theGroup.Next()}, 1)
	for i, want := range []string{"none", theGroup.Next().String()} {
		err := a.tryOnce(a.peers[i])
		var mismatch *MismatchError
		if !errors.As(err, &mismatch) || mismatch.What != "group" || mismatch.Their != want {
			t.Errorf("%s: refused by %v", want, err)
		}
	}
	hello := frame(0xff, 1, 60)
	a.send(inner.VNet{}, hello)
	a.await("sent though nobody is there", func(s Stats) bool {
		return s.Group.Dropped["no_peer"] == 1 && s.Group.TxPackets == 0 && !s.Group.Up
	})
}

// TestGroupMTU: what is for all is as long as the smallest of all insides takes; who sends more
// is told, and what may be cut goes in fragments.
func TestGroupMTU(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Group: theGroup}
	a, b := l.site(1, 1500, TAP, c, 2, 3), l.site(2, 1500, TAP, c, 1, 3)
	l.inside = 600
	small := l.site(3, 1500, TAP, c, 1, 2)
	for _, s := range []*site{a, b, small} {
		s.awaitUp()
	}
	before := frame(0xff, 1, 14)
	before[12], before[13] = 8, 0
	packet := ipv4(1, 2, 1480)
	a.send(inner.VNet{}, append(bytes.Clone(before), packet...))
	for _, s := range []*site{b, small} {
		var data []byte
		for len(data) < 1460 {
			_, got := s.receive()
			if ip := got[14:]; len(ip) > 600 {
				t.Fatalf("%d bytes", len(ip))
			}
			data = append(data, got[34:]...)
		}
		if !bytes.Equal(data, packet[20:]) {
			t.Errorf("%x... came", data[:8])
		}
	}
	small.end()
	a.leave(a.peers[1])
	if mtu := a.group.ways[0].Load().mtu; mtu != 1500 {
		t.Errorf("the MTU is %d when that peer has gone", mtu)
	}
}

// TestGroupRefused: what has no group is refused when the tunnel is opened.
func TestGroupRefused(t *testing.T) {
	l := newLAN(t, sim.Faults{})
	dev, m := l.device(1, 1500)
	peers := []Peer{{Addr: addr(2)}}
	for name, tt := range map[string]struct {
		kind InsideKind
		Config
	}{
		"over rc":     {TAP, Config{Over: OverRC}},
		"over uc":     {TAP, Config{Over: OverUC}},
		"over native": {TAP, Config{Over: OverNative, Format: encap.Raw}},
		"a TUN":       {TUN, Config{Format: encap.IPoIB}},
		"a key":       {TAP, Config{Key: testKey("one")}},
		"no group":    {TAP, Config{Group: addr(2)}},
		"other family": {TAP, Config{
			Group: netip.MustParseAddr("ff12:401b:ffff::ffff:ffff"),
		}},
		"other prefix": {TAP, Config{Learn: prefixes("fd00::/8")}},
	} {
		c := tt.Config
		c.Peers = peers
		if c.Format == 0 {
			c.Format = encap.EoIB
		}
		if !c.Group.IsValid() {
			c.Group = theGroup
		}
		inside := &Inside{Kind: tt.kind, MTU: 1000, Queues: []Queue{newFakeQueue()}}
		if _, err := Open(dev, m, inside, c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
