package engine_test

import (
	"context"
	"testing"

	"xroce/bpf"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk/vethpair"
)

// A steered is a device whose XDP program is looked at, and one that sends frames to it.
type steered struct {
	t      *testing.T
	w      *world
	dev    *engine.Device
	sender *seat
}

// steer makes both. The sender sends from a port of which nothing is received.
func steer(t *testing.T, o engine.Options) *steered {
	t.Helper()
	o.RawPackets = true
	w := vethWorld(t, vethpair.Options{}, o)
	return &steered{t: t, w: w, dev: w.devs[1], sender: rawSeat(t, w.devs[0])}
}

// counts returns the counter of a reason.
func (s *steered) count(r bpf.Reason) uint64 {
	s.t.Helper()
	c, err := engine.ProgramCounters(s.dev)
	if err != nil {
		s.t.Fatal(err)
	}
	return c[r].Packets
}

// expect sends a frame to a MAC address and wants the program to decide for a reason.
func (s *steered) expect(what string, to [6]byte, etherType uint16, r bpf.Reason) {
	s.t.Helper()
	other := map[bpf.Reason]bpf.Reason{
		bpf.RedirectV1: bpf.PassNotOurs, bpf.RedirectNative: bpf.PassNotOurs,
	}[r]
	if r == bpf.PassNotOurs {
		other = bpf.RedirectV1
		if etherType == experimental {
			other = bpf.RedirectNative
		}
	}
	right, wrong := s.count(r), s.count(other)
	s.sender.frame(s.t, to, etherType, 100)
	s.w.succeed(s.sender.cq, 1)
	s.w.run(func() bool { return s.count(r) > right || s.count(other) > wrong })
	if s.count(other) > wrong {
		s.t.Errorf("%s: a frame of EtherType %#04x is %s, want %s", what, etherType, other, r)
	}
}

// TestUnwantedIsTheKernels: frames of EtherType 0x88b5 and RoCE v1 packets are taken from
// the kernel only while somebody wants them.
func TestUnwantedIsTheKernels(t *testing.T) {
	s := steer(t, engine.Options{})
	mac := s.dev.Port().MAC
	s.expect("nobody asked", mac, experimental, bpf.PassNotOurs)
	s.expect("nobody asked", mac, wire.EtherTypeV1, bpf.PassNotOurs)

	handler := rawSeat(t, s.dev, experimental)
	s.expect("a handler", mac, experimental, bpf.RedirectNative)
	s.expect("a handler of another", mac, wire.EtherTypeV1, bpf.PassNotOurs)
	handler.qp.Close()
	s.expect("no handler any more", mac, experimental, bpf.PassNotOurs)
	other := rawSeat(t, s.dev, 0x88b6)
	s.expect("a handler of another", mac, experimental, bpf.PassNotOurs)
	other.qp.Close()

	a, b := seatOn(t, s.w.devs[0], engine.QPInit{}), seatOn(t, s.dev, engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{SGIDIndex: v1(gidIPv4)})
	s.expect("a connection", mac, wire.EtherTypeV1, bpf.RedirectV1)
	transfer(t, s.w, a, b, roce.OpSend, 9000)
	if err := b.qp.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState); err != nil {
		t.Fatal(err)
	}
	s.expect("after RESET", mac, wire.EtherTypeV1, bpf.PassNotOurs)

	c, d := seatOn(t, s.w.devs[0], engine.QPInit{}), seatOn(t, s.dev, engine.QPInit{})
	join(t, c, d, engine.ConnectOptions{SGIDIndex: v1(gidIPv4)})
	s.expect("another connection", mac, wire.EtherTypeV1, bpf.RedirectV1)
	d.qp.Close()
	s.expect("after Close", mac, wire.EtherTypeV1, bpf.PassNotOurs)

	e := seatOn(t, s.dev, engine.QPInit{})
	peer := s.w.devs[0].GIDs()[gidIPv4]
	_, err := s.dev.CreateAH(context.Background(), e.pd, engine.AddressVector{
		DGID: peer, SGIDIndex: v1(gidIPv4),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.expect("an address handle", mac, wire.EtherTypeV1, bpf.RedirectV1)
}

// TestRoCEv1FromTheBeginning takes RoCE v1 because the options say so.
func TestRoCEv1FromTheBeginning(t *testing.T) {
	s := steer(t, engine.Options{RoCEv1: true})
	s.expect("the option", s.dev.Port().MAC, wire.EtherTypeV1, bpf.RedirectV1)
	s.expect("the option", s.dev.Port().MAC, experimental, bpf.PassNotOurs)
}

// TestGroupsAreSteered: what goes to the MAC address of a group is taken as what goes to
// that of the interface is, as long as a QP is in the group.
func TestGroupsAreSteered(t *testing.T) {
	s := steer(t, engine.Options{})
	group := wire.GID{0: 0xff, 1: 0x0e, 15: 7}
	mac := group.MulticastMAC(wire.FramingV2IPv6)
	member := seatOn(t, s.dev, engine.QPInit{Type: roce.TypeUD})
	if err := member.qp.AttachMulticast(group); err != nil {
		t.Fatal(err)
	}
	s.expect("no handler", mac, experimental, bpf.PassNotOurs)
	handler := rawSeat(t, s.dev, experimental)
	s.expect("a handler", mac, experimental, bpf.RedirectNative)
	if err := member.qp.DetachMulticast(group); err != nil {
		t.Fatal(err)
	}
	s.expect("nobody in the group", mac, experimental, bpf.PassNotOurs)
	if err := member.qp.AttachMulticast(group); err != nil {
		t.Fatal(err)
	}
	s.expect("again", mac, experimental, bpf.RedirectNative)
	handler.qp.Close()
	s.expect("no handler any more", mac, experimental, bpf.PassNotOurs)
}
