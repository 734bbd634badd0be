package engine_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/bpf"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// A vlanWorld is two devices that have a VLAN. The tap sees what comes to either.
type vlanWorld struct {
	*world
	tap  *frameTap
	vlan wire.VLAN
}

// vlansTested are one of 802.1Q, one on such, and one on that of a service (802.1ad).
var vlansTested = []wire.VLAN{
	testVLAN,
	wire.Tags{{TPID: wire.TPIDCustomer, TCI: 100}, {TPID: wire.TPIDCustomer, TCI: 5}}.VLAN(),
	wire.Tags{{TPID: wire.TPIDService, TCI: 100}, {TPID: wire.TPIDCustomer, TCI: 5}}.VLAN(),
}

// vlanWorlds runs a test with two devices that have a VLAN, of each kind: on the simulated wire;
// over AF_XDP with hosts that say that there is one, whatever the kernel knows of it;
// and with VLAN interfaces that are made after the devices are open.
func vlanWorlds(t *testing.T, test func(*testing.T, *vlanWorld)) {
	t.Helper()
	for _, vlan := range vlansTested {
		tap := &frameTap{}
		o := engine.Options{Tap: tap, RawPackets: true}
		t.Run(vlan.String()+"/sim", func(t *testing.T) {
			w, _ := movingWorldOn(t, vlan, o)
			test(t, &vlanWorld{w, tap, vlan})
		})
		t.Run(vlan.String()+"/veth", func(t *testing.T) {
			test(t, &vlanWorld{taggedWorld(t, vlan, vethpair.DefaultMTU, o), tap, vlan})
		})
		t.Run(vlan.String()+"/kernel", func(t *testing.T) {
			w := vethWorld(t, vethpair.Options{}, o)
			for i, side := range []vethpair.Side{vethpair.A, vethpair.B} {
				addVLAN(t, w.pair, side, vlan, vlanAddrs(i))
			}
			for i, d := range w.devs {
				for _, a := range vlanAddrs(i) {
					indexOf(t, d, a, true)
				}
				gidChange(t, d)
			}
			test(t, &vlanWorld{w, tap, vlan})
		})
	}
}

// taggedWorld is a vethWorld with moving hosts. What Open does for the kernel's
// interfaces is done here for what the hosts say.
func taggedWorld(t *testing.T, vlan wire.VLAN, mtu int, o engine.Options) *world {
	t.Helper()
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(vethpair.Options{NoAddrs: true, MTU: mtu})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pair.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Direct = true
	w := &world{t: t, pair: pair}
	for i, side := range []vethpair.Side{vethpair.A, vethpair.B} {
		own, other := pair.End(side), pair.End(1-side)
		err := pair.Do(side, func() error {
			program, err := bpf.Attach(own.Ifindex, bpf.Options{})
			if err != nil {
				return err
			}
			link, err := xsk.Open(xsk.Config{Ifindex: own.Ifindex})
			if err != nil {
				return errors.Join(err, program.Close())
			}
			port := engine.Port{
				Name: own.Name, Index: own.Ifindex, MAC: [6]byte(own.MAC), MTU: mtu, Up: true,
			}
			host := newMovingHost(i, vlan, port, [6]byte(other.MAC), program)
			for _, e := range host.Port().GIDTable() {
				key, err := bpf.AddrKey(e.GID.Addr())
				err = errors.Join(err, program.Own(key))
				if err != nil {
					return errors.Join(err, link.Close(), host.Close())
				}
			}
			if err := program.Register(0, link.FD()); err != nil {
				return errors.Join(err, link.Close(), host.Close())
			}
			dev, err := engine.OpenLink(link, host, o)
			if err != nil {
				return err
			}
			w.devs = append(w.devs, dev)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.devs[i].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	w.run = spinUntil(t, w)
	return w
}

// addVLAN makes a VLAN interface with addresses on one end, and what it is on.
func addVLAN(
	t *testing.T, pair *vethpair.Pair, side vethpair.Side, vlan wire.VLAN, addrs []netip.Addr,
) {
	t.Helper()
	in(t, pair, side, func(link netlink.Link) error {
		tags := vlan.Tags(0)
		for _, tag := range tags[:tags.Len()/wire.TagLen] {
			attrs := netlink.NewLinkAttrs()
			attrs.ParentIndex = link.Attrs().Index
			attrs.Name = fmt.Sprintf("%s.%d", link.Attrs().Name, tag.VLANID())
			link = &netlink.Vlan{
				LinkAttrs: attrs, VlanId: int(tag.VLANID()),
				VlanProtocol: netlink.VlanProtocol(tag.TPID),
			}
			if err := netlink.LinkAdd(link); err != nil {
				if errors.Is(err, unix.EOPNOTSUPP) {
					t.Skip("SKIPPED: this kernel has no VLAN interfaces (CONFIG_VLAN_8021Q)")
				}
				return err
			}
			path := "/proc/sys/net/ipv6/conf/" + attrs.Name + "/accept_dad"
			err := errors.Join(os.WriteFile(path, []byte("0"), 0), netlink.LinkSetUp(link))
			if err != nil {
				return err
			}
		}
		for _, a := range addrs {
			if err := netlink.AddrAdd(link, addrOf(a)); err != nil {
				return err
			}
		}
		return nil
	})
}

// vlanGIDs are the indexes of an address of the VLAN at both devices.
func vlanGIDs(t *testing.T, w *vlanWorld, which int) (from [2]int) {
	t.Helper()
	for i, d := range w.devs {
		from[i] = indexOf(t, d, vlanAddrs(i)[which], true)
		e, err := d.QueryGID(from[i])
		if err != nil || e.VLAN != w.vlan || e.Type != engine.GIDRoCEv2 {
			t.Fatalf("%+v (%v)", e, err)
		}
	}
	return from
}

// tagsOf are the tags of RoCE frames.
func tagsOf(t *testing.T, frames [][]byte) map[wire.Tags]int {
	t.Helper()
	tags := map[wire.Tags]int{}
	for _, f := range frames {
		var p wire.Packet
		if r := p.Decode(f, nil); r != wire.OK || !p.VerifyICRC() {
			t.Fatalf("a frame came that is %s: % x", r, f)
		}
		tags[p.Tags]++
	}
	return tags
}

// TestVLAN runs connections and datagrams on a VLAN: every frame has its tags with the
// service level as priority, and beside it others go without a tag.
func TestVLAN(t *testing.T) {
	vlanWorlds(t, func(t *testing.T, w *vlanWorld) {
		var frames [][]byte
		for which := range vlanAddrs(0) {
			from := vlanGIDs(t, w, which)
			a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
			joinFrom(t, a, b, from, engine.ConnectOptions{SL: 3})
			c, d := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
			join(t, c, d, engine.ConnectOptions{SL: 3})
			w.tap.take()
			for _, op := range []roce.Opcode{
				roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm,
			} {
				transfer(t, w.world, a, b, op, 5000)
				transfer(t, w.world, b, a, op, 5000)
			}
			frames = append(frames, w.tap.take()...)
			if tags := tagsOf(t, frames); len(tags) != 1 || tags[w.vlan.Tags(3)] == 0 {
				t.Errorf("frames by tag: %x", tags)
			}
			transfer(t, w.world, c, d, roce.OpWrite, 5000)
			if tags := tagsOf(t, w.tap.take()); len(tags) != 1 || tags[wire.Tags{}] == 0 {
				t.Errorf("frames of others by tag: %x", tags)
			}
		}
		filter := "vlan.id==5 && vlan.priority==3"
		switch tags := w.vlan.Tags(3); {
		case tags[0].TPID == wire.TPIDService:
			filter += " && ieee8021ad.id==100 && ieee8021ad.priority==3"
		case tags.Len() > wire.TagLen:
			filter += " && vlan.id==100"
		}
		tsharkAgrees(t, frames, filter)
	})
}

// TestForeignTagsAreDropped: a packet is for a GID only with the tag of its VLAN. The
// priority does not matter, and a tag of priority alone is none.
func TestForeignTagsAreDropped(t *testing.T) {
	vlanWorlds(t, func(t *testing.T, w *vlanWorld) {
		raw := rawSeat(t, w.devs[0])
		from := vlanGIDs(t, w, 0)
		a := datagramSeat(t, w.devs[0], engine.QPInit{})
		b := datagramSeat(t, w.devs[1], engine.QPInit{})
		for range 10 {
			b.recv(t, 0, 0, 100)
		}
		ah, err := a.dev.CreateAH(t.Context(), a.pd, engine.AddressVector{
			DGID: w.devs[1].GIDs()[from[1]], SGIDIndex: from[0],
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			handle *roce.AH
			good   []wire.Tags // tags that are taken
			bad    []wire.Tags
		}{
			{
				ah,
				[]wire.Tags{w.vlan.Tags(0), w.vlan.Tags(7)},
				append(w.otherTags(), none, priority),
			},
			{
				a.handle(t, w.devs[1].GIDs()[gidIPv4], gidIPv4),
				[]wire.Tags{none, priority},
				append(w.otherTags(), w.vlan.Tags(0), w.vlan.Tags(7)),
			},
		} {
			w.tap.take()
			a.send(t, a.datagram(c.handle, b.qp.QPN(), 10))
			w.succeed(b.cq, 1)
			frame := w.tap.take()[0]
			for _, tags := range c.good {
				raw.post(t, copy(raw.mr.Bytes(), retag(frame, tags)))
				w.succeed(b.cq, 1)
			}
			for _, tags := range c.bad {
				before := counterOf(t, w.devs[1], "drop_not_local")
				raw.post(t, copy(raw.mr.Bytes(), retag(frame, tags)))
				w.run(func() bool {
					return counterOf(t, w.devs[1], "drop_not_local") == before+1
				})
			}
		}
	})
}

// TestGroupsAreForOwnVLANs: what is sent to a group comes without a tag, or with that
// of a VLAN that the device has an address on.
func TestGroupsAreForOwnVLANs(t *testing.T) {
	tap := &frameTap{}
	w, _ := movingWorld(t, engine.Options{Tap: tap, RawPackets: true})
	raw := rawSeat(t, w.devs[0])
	a := datagramSeat(t, w.devs[0], engine.QPInit{})
	b := datagramSeat(t, w.devs[1], engine.QPInit{})
	b.attach(t, groups[0].gid)
	for range 4 {
		b.recv(t, 0, 0, 100)
	}
	a.multicast(t, groups[0].gid, gidIPv4, 1)
	w.succeed(b.cq, 1)
	frame := tap.take()[0]
	frame[10] = 9 // from somebody else
	for _, vlan := range []wire.VLAN{6, testVLAN, 0} {
		raw.post(t, copy(raw.mr.Bytes(), retag(frame, vlan.Tags(0))))
		if vlan == 6 {
			w.run(func() bool { return counterOf(t, w.devs[1], "drop_multicast") == 1 })
		} else {
			w.succeed(b.cq, 1)
		}
	}
}

// Tags of no VLAN.
var (
	none     = wire.Tags{}
	priority = wire.Tags{{TPID: wire.TPIDCustomer, TCI: 7 << 13}}
)

// otherTags are those of other VLANs than that of the devices.
func (w *vlanWorld) otherTags() (list []wire.Tags) {
	own := w.vlan.Tags(0)
	outer, service, far := own, own, own
	outer[1] = wire.Tag{}
	service[0].TPID ^= wire.TPIDCustomer ^ wire.TPIDService
	far[0].TCI++
	for _, tags := range []wire.Tags{
		wire.VLAN(6).Tags(0), wire.VLAN(testVLAN).Tags(0), outer, service, far,
	} {
		if tags != own {
			list = append(list, tags)
		}
	}
	return list
}

// retag gives a frame other tags.
func retag(frame []byte, tags wire.Tags) []byte {
	was, _, _, _ := wire.ParseTags(frame)
	now := make([]byte, tags.Len())
	tags.Put(now)
	return slices.Concat(frame[:12], now, frame[12+was.Len():])
}

// TestConnectionKeepsItsVLAN drops packets of the peer with another tag.
func TestConnectionKeepsItsVLAN(t *testing.T) {
	vlanWorlds(t, func(t *testing.T, w *vlanWorld) {
		raw := rawSeat(t, w.devs[0])
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		joinFrom(t, a, b, vlanGIDs(t, w, 0), engine.ConnectOptions{})
		w.tap.take()
		a.send(t, writeTo(a, b, roce.OpWrite, 100))
		w.succeed(a.cq, 1)
		frame := w.tap.take()[0]
		for i, tags := range append(w.otherTags(), none, priority) {
			raw.post(t, copy(raw.mr.Bytes(), retag(frame, tags)))
			w.run(func() bool {
				return counterOf(t, w.devs[1], "drop_bad_source") == uint64(i+1)
			})
		}
		raw.post(t, copy(raw.mr.Bytes(), frame))
		w.run(func() bool { return counterOf(t, w.devs[1], "duplicate_request") == 1 })
	})
}

// TestTwoTagsTakeOfTheMTU: beside the MTU there is room for one tag. Where an address has two, a
// path MTU fits 4 bytes later, and then its longest packets arrive.
func TestTwoTagsTakeOfTheMTU(t *testing.T) {
	const least = 1024 + wire.MTUOverhead // of an MTU for a path MTU of 1024
	for _, vlan := range vlansTested {
		beyond := vlan.Tags(0).Len() - wire.TagLen
		w, hosts := movingWorldOn(t, vlan, engine.Options{})
		for mtu, want := range map[int]wire.MTU{
			least + beyond - 1: wire.MTU512, least + beyond: wire.MTU1024,
		} {
			hosts[0].change(func(p *engine.Port, _ map[netip.Addr]engine.Hop) { p.MTU = mtu })
			if got := w.devs[0].ActiveMTU(); got != want {
				t.Errorf("VLAN %s, MTU %d: path MTU %s, not %s", vlan, mtu, got, want)
			}
		}
		t.Run(vlan.String(), func(t *testing.T) {
			tap := &frameTap{}
			o := engine.Options{Tap: tap}
			w := &vlanWorld{taggedWorld(t, vlan, least+beyond, o), tap, vlan}
			from := vlanGIDs(t, w, 1) // IPv6
			a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
			joinFrom(t, a, b, from, engine.ConnectOptions{PathMTU: wire.MTU1024})
			transfer(t, w.world, a, b, roce.OpWrite, 5000)
			longest := 0
			for _, f := range tap.take() {
				longest = max(longest, len(f))
			}
			if want := 14 + wire.TagLen + least + beyond; longest != want {
				t.Errorf("the longest frame has %d bytes, not %d", longest, want)
			}
		})
	}
}

// TestServiceLevels are three bits.
func TestServiceLevels(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	if _, err := w.devs[0].ResolvePath(t.Context(), engine.AddressVector{
		DGID: w.devs[1].GIDs()[gidIPv4], SGIDIndex: gidIPv4, SL: 8,
	}); err == nil {
		t.Error("SL 8 is taken")
	}
}
