package engine_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk/vethpair"
)

// The groups of these tests, by IPv4 and by IPv6, with their Ethernet addresses.
var groups = []struct {
	gid   wire.GID
	index int // of the GID to send from
	mac   [6]byte
}{
	{
		wire.GIDFromAddr(netip.MustParseAddr("239.193.2.3")), gidIPv4,
		[6]byte{0x01, 0x00, 0x5e, 0x41, 2, 3},
	},
	{
		wire.GIDFromAddr(netip.MustParseAddr("ff15::1234:5678")), gidIPv6,
		[6]byte{0x33, 0x33, 0x12, 0x34, 0x56, 0x78},
	},
}

// attach puts a seat's QP into a group.
func (s *seat) attach(t *testing.T, group wire.GID) {
	t.Helper()
	if err := s.qp.AttachMulticast(group); err != nil {
		t.Fatal(err)
	}
}

func (s *seat) detach(t *testing.T, group wire.GID) {
	t.Helper()
	if err := s.qp.DetachMulticast(group); err != nil {
		t.Fatal(err)
	}
}

// multicast sends a datagram with a number to a group.
func (s *seat) multicast(t *testing.T, group wire.GID, index int, number uint32) {
	t.Helper()
	wr := s.datagram(s.handle(t, group, index), wire.MulticastQP, 20)
	wr.Imm = number
	s.send(t, wr)
}

// TestMulticastReachesEveryMember, those at the sender's own host too, and only
// them: not the sender, not who did not attach, not who left.
func TestMulticastReachesEveryMember(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		members := func(dev int, n int) (list []*seat) {
			for range n {
				list = append(list, datagramSeat(t, w.devs[dev], engine.QPInit{}))
			}
			return list
		}
		here, there := members(0, 3), members(1, 3)
		sender, stranger, gone := here[0], there[1], there[2]
		inside := []*seat{here[1], here[2], there[0]}
		for _, group := range groups {
			for _, s := range slices.Concat(here, there) {
				s.recv(t, 0, 0, 100)
				if s != stranger {
					s.attach(t, group.gid)
				}
			}
			gone.detach(t, group.gid)
			for number := range uint32(3) {
				sender.multicast(t, group.gid, group.index, number)
				w.succeed(sender.cq, 1)
				for _, s := range inside {
					wc := w.succeed(s.cq, 1)[0]
					if wc.Imm != number || wc.SrcQP != sender.qp.QPN() || wc.Flags&roce.WCGRH == 0 {
						t.Errorf("%+v", wc)
					}
					s.recv(t, 0, 0, 100)
				}
			}
			if av, err := there[0].dev.ReplyVector(there[0].mr.Bytes()[:grhLen]); err != nil ||
				av.DGID != w.devs[0].GIDs()[group.index] || av.SGIDIndex != group.index {
				t.Errorf("the reply goes to %+v (%v)", av, err)
			}
			for _, s := range []*seat{sender, stranger, gone} {
				var wcs [1]roce.Completion
				if n, err := s.cq.Poll(wcs[:]); n != 0 || err != nil {
					t.Errorf("it came to one that it is not for: %+v (%v)", wcs[0], err)
				}
			}
			for _, s := range append(inside, sender) {
				s.detach(t, group.gid)
			}
		}
		// Nobody is left.
		dropped := func() uint64 { return counterOf(t, w.devs[1], "drop_multicast") }
		before := dropped()
		sender.multicast(t, groups[0].gid, gidIPv4, 9)
		w.succeed(sender.cq, 1)
		if w.network != nil {
			w.run(func() bool { return dropped() > before })
		}
	})
}

// TestMulticastOnTheWire looks at the addresses of the frames, and that each other
// port of a network gets one.
func TestMulticastOnTheWire(t *testing.T) {
	w := simWorld(t, 4, sim.Faults{}, engine.Options{})
	type sent struct{ to, mac [6]byte }
	var seen []sent
	w.network.Observe(func(e *sim.Event) {
		if e.Kind == sim.Delivered {
			seen = append(seen, sent{e.To, [6]byte(e.Frame)})
		}
	})
	s := datagramSeat(t, w.devs[0], engine.QPInit{})
	for _, group := range groups {
		seen = nil
		s.multicast(t, group.gid, group.index, 1)
		w.succeed(s.cq, 1)
		w.idle()
		var want []sent
		for port := byte(2); port <= 4; port++ {
			want = append(want, sent{[6]byte{2, 0, 0, 0, 0, port}, group.mac})
		}
		if !slices.Equal(seen, want) {
			t.Errorf("%s: % x, want % x", group.gid, seen, want)
		}
	}
}

// TestMulticastNeedsTheQKey drops for the member that has another one, and for
// nobody else.
func TestMulticastNeedsTheQKey(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a := datagramSeat(t, w.devs[0], engine.QPInit{})
	good := datagramSeat(t, w.devs[1], engine.QPInit{})
	bad := seatOn(t, w.devs[1], engine.QPInit{Type: roce.TypeUD})
	if err := bad.qp.Start(qkey + 1); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*seat{bad, good} {
		s.recv(t, 0, 0, 100)
		s.attach(t, groups[0].gid)
	}
	a.multicast(t, groups[0].gid, gidIPv4, 1)
	w.succeed(good.cq, 1)
	if n := counterOf(t, w.devs[1], "drop_bad_qkey"); n != 1 {
		t.Errorf("drop_bad_qkey is %d, want 1", n)
	}
	if posted := bad.qp.Snapshot().RecvPosted; posted != 1 {
		t.Errorf("it has %d receives left of 1", posted)
	}
}

// TestMulticastMisuse is refused.
func TestMulticastMisuse(t *testing.T) {
	w := simWorld(t, 1, sim.Faults{}, engine.Options{})
	ud, rc := datagramSeat(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[0], engine.QPInit{})
	group := groups[0].gid
	ud.attach(t, group)
	for what, err := range map[string]error{
		"an RC QP":        rc.qp.AttachMulticast(group),
		"no group":        ud.qp.AttachMulticast(w.devs[0].GIDs()[gidIPv4]),
		"twice":           ud.qp.AttachMulticast(group),
		"never attached":  ud.qp.DetachMulticast(groups[1].gid),
		"not an RC QP's":  rc.qp.DetachMulticast(group),
		"the zero GID":    ud.qp.AttachMulticast(wire.GID{}),
		"the zero GID of": ud.qp.DetachMulticast(wire.GID{}),
	} {
		if !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ud.qp.Close()
	if err := ud.qp.AttachMulticast(group); err == nil {
		t.Error("a closed QP is attached")
	}
}

// memberships reads the kernel's memberships of one end: those of IGMP and MLD, and
// the Ethernet addresses that the interface listens to.
func memberships(t *testing.T, pair *vethpair.Pair, side vethpair.Side, group wire.GID) (
	inGroup, onLink bool,
) {
	t.Helper()
	mac := group.MulticastMAC(wire.FramingV2IPv6)
	file, name := "igmp6", hex.EncodeToString(group[:])
	if group.IsIPv4() {
		v4 := group.IPv4()
		mac = group.MulticastMAC(wire.FramingV2IPv4)
		file, name = "igmp", fmt.Sprintf("%08X", binary.NativeEndian.Uint32(v4[:]))
	}
	err := pair.Do(side, func() error {
		for _, look := range []struct {
			file, name string
			found      *bool
		}{{file, name, &inGroup}, {"dev_mcast", hex.EncodeToString(mac[:]), &onLink}} {
			text, err := os.ReadFile("/proc/thread-self/net/" + look.file)
			if err != nil {
				return err
			}
			*look.found = slices.Contains(strings.Fields(string(text)), look.name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return inGroup, onLink
}

// expectMember compares with what the kernel knows.
func expectMember(t *testing.T, w *world, group wire.GID, want bool) {
	t.Helper()
	inGroup, onLink := memberships(t, w.pair, vethpair.A, group)
	if inGroup != want || onLink != want {
		t.Errorf("%s: in the group %t, its frames come %t, want %t", group, inGroup, onLink, want)
	}
}

// TestKernelKnowsTheMembership as long as a QP is in the group, and no longer:
// after a detach, a QP's Close, and a device's.
func TestKernelKnowsTheMembership(t *testing.T) {
	w := vethWorld(t, vethpair.Options{}, engine.Options{})
	for _, group := range groups {
		a := datagramSeat(t, w.devs[0], engine.QPInit{})
		b := datagramSeat(t, w.devs[0], engine.QPInit{})
		expectMember(t, w, group.gid, false)
		a.attach(t, group.gid)
		expectMember(t, w, group.gid, true)
		b.attach(t, group.gid)
		a.detach(t, group.gid)
		expectMember(t, w, group.gid, true)
		b.qp.Close()
		expectMember(t, w, group.gid, false)
		a.attach(t, group.gid)
	}
	if err := w.devs[0].Close(); err != nil {
		t.Fatal(err)
	}
	for _, group := range groups {
		expectMember(t, w, group.gid, false)
	}
}

// TestTooManyGroups fails for the one that the kernel refuses, says what to do,
// and leaves room for another as soon as one is left.
func TestTooManyGroups(t *testing.T) {
	w := vethWorld(t, vethpair.Options{}, engine.Options{})
	s := datagramSeat(t, w.devs[0], engine.QPInit{})
	group := func(i int) wire.GID {
		return wire.GIDFromIPv4([4]byte{239, 1, byte(i >> 8), byte(i)})
	}
	joined := 0
	var err error
	for ; joined < 1000 && err == nil; joined++ {
		err = s.qp.AttachMulticast(group(joined))
	}
	joined--
	if !errors.Is(err, unix.ENOBUFS) || !strings.Contains(err.Error(), "igmp_max_memberships") {
		t.Fatalf("group %d: %v", joined, err)
	}
	if err := s.qp.DetachMulticast(group(joined)); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("it was attached nevertheless: %v", err)
	}
	s.detach(t, group(0))
	s.attach(t, group(joined))
	expectMember(t, w, group(joined), true)
}

// A groupHost is a simulated host that keeps the memberships, and refuses some.
type groupHost struct {
	engine.Host
	mu     sync.Mutex
	joined map[netip.Addr]bool
	refuse bool
}

func (g *groupHost) Join(group netip.Addr) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse || g.joined[group] {
		return fmt.Errorf("%s: %w", group, os.ErrExist)
	}
	g.joined[group] = true
	return nil
}

func (g *groupHost) Leave(group netip.Addr) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.joined[group] {
		return fmt.Errorf("%s: %w", group, os.ErrNotExist)
	}
	delete(g.joined, group)
	return nil
}

// TestJoinIsRefused and the QP is in no group then; a group is joined once.
func TestJoinIsRefused(t *testing.T) {
	network := newNetwork(t, 1, &sim.VirtualClock{}, sim.Faults{})
	port := newPort(t, network, 0)
	host := &groupHost{Host: port, joined: map[netip.Addr]bool{}, refuse: true}
	dev, err := engine.OpenLink(port, host, engine.Options{Direct: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}()
	a, b := datagramSeat(t, dev, engine.QPInit{}), datagramSeat(t, dev, engine.QPInit{})
	group := groups[0].gid
	if err := a.qp.AttachMulticast(group); !errors.Is(err, os.ErrExist) {
		t.Errorf("attached: %v", err)
	}
	if err := a.qp.DetachMulticast(group); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("in the group: %v", err)
	}
	host.refuse = false
	for range 2 {
		a.attach(t, group)
		b.attach(t, group)
		a.qp.Close()
		b.detach(t, group)
		a = datagramSeat(t, dev, engine.QPInit{})
	}
	if len(host.joined) != 0 {
		t.Errorf("still in %v", host.joined)
	}
	delete(host.joined, group.Addr())
	a.attach(t, group)
	delete(host.joined, group.Addr())
	if err := a.qp.DetachMulticast(group); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("leaving failed and nobody says so: %v", err)
	}
	a.attach(t, group)
}

// TestMembersComeAndGoInAFlood attaches, detaches and closes while packets fly.
// Nobody hears a message twice or in disorder, and no frame is lost from the rings.
func TestMembersComeAndGoInAFlood(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	ports := []*sim.Port{newPort(t, network, 0), newPort(t, network, 1)}
	var devs []*engine.Device
	hosts := make([]*groupHost, 2)
	for i, port := range ports {
		hosts[i] = &groupHost{Host: port, joined: map[netip.Addr]bool{}}
		dev, err := engine.OpenLink(port, hosts[i], engine.Options{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		devs = append(devs, dev)
	}
	flood(t, devs, 400)
	for i, dev := range devs {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		if tx, rx := ports[i].Held(); tx != 0 || rx != 0 {
			t.Errorf("port %d: %d transmit and %d receive frames are gone", i, tx, rx)
		}
		if len(hosts[i].joined) != 0 {
			t.Errorf("port %d: still in %v", i, hosts[i].joined)
		}
	}
}

// TestMembersComeAndGoOverAFXDP does the same with the kernel's memberships.
func TestMembersComeAndGoOverAFXDP(t *testing.T) {
	pair, devs := vethPair(t, vethpair.Options{}, [2]engine.Options{})
	flood(t, devs[:], 100)
	for _, d := range devs {
		if n := counterOf(t, d, "kernel_faults"); n != 0 {
			t.Errorf("kernel_faults is %d", n)
		}
	}
	if in, on := memberships(t, pair, vethpair.B, groups[0].gid); in || on {
		t.Errorf("in the group %t, its frames come %t, and nobody is attached", in, on)
	}
}

// flood has the first device send numbers to a group without end, while QPs of
// both come, hear one and go again, some by Close alone.
func flood(t *testing.T, devs []*engine.Device, rounds int) {
	t.Helper()
	group := groups[0].gid
	sender := datagramSeat(t, devs[0], engine.QPInit{})
	ah := sender.handle(t, group, gidIPv4)
	var stop atomic.Bool
	var running sync.WaitGroup
	running.Go(func() {
		var wcs [64]roce.Completion
		for number := uint32(0); !stop.Load(); {
			wr := sender.datagram(ah, wire.MulticastQP, 20)
			wr.Imm = number
			switch err := sender.qp.PostSend(&wr); {
			case err == nil:
				number++
			case !errors.Is(err, roce.ErrQueueFull):
				t.Error(err)
				return
			}
			if _, err := sender.cq.Poll(wcs[:]); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var comers sync.WaitGroup
	for _, dev := range devs {
		comers.Go(func() {
			for round := range rounds {
				if !visit(t, dev, group, round%2 == 0) {
					return
				}
			}
		})
	}
	comers.Wait()
	stop.Store(true)
	running.Wait()
	sender.qp.Close()
}

// visit hears some messages to a group with a new QP and leaves.
func visit(t *testing.T, dev *engine.Device, group wire.GID, detach bool) bool {
	const receives = 3
	pd := dev.AllocPD()
	cq, err := dev.CreateCQ(2 * receives)
	if err != nil {
		t.Error(err)
		return false
	}
	mr, err := dev.RegMR(pd, make([]byte, 100), rights)
	if err != nil {
		t.Error(err)
		return false
	}
	qp, err := dev.CreateQP(pd, engine.QPInit{Type: roce.TypeUD, SendCQ: cq, RecvCQ: cq})
	if err != nil {
		t.Error(err)
		return false
	}
	err = qp.Start(qkey)
	for range receives {
		err = errors.Join(err, qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{mr.SGE(0, 100)}}))
	}
	if err = errors.Join(err, qp.AttachMulticast(group)); err != nil {
		t.Error(err)
		return false
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	var wcs [receives]roce.Completion
	n, err := cq.Wait(ctx, wcs[:])
	if detach {
		err = errors.Join(err, qp.DetachMulticast(group))
	}
	qp.Close()
	mr.Deregister()
	if err = errors.Join(err, cq.Close(), pd.Close()); err != nil {
		t.Error(err)
		return false
	}
	for i := 1; i < n; i++ {
		if wcs[i].Imm <= wcs[i-1].Imm {
			t.Errorf("message %d came after %d", wcs[i].Imm, wcs[i-1].Imm)
		}
	}
	return true
}
