package engine_test

import (
	"bytes"
	"encoding/binary"
	"errors"
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

// vlanWorlds runs a test with two devices that have a VLAN: on the simulated wire;
// over AF_XDP with hosts that say that there is one, whatever the kernel knows of it;
// and with VLAN interfaces that are made after the devices are open. The tap sees what
// comes to either.
func vlanWorlds(t *testing.T, test func(*testing.T, *world, *frameTap)) {
	t.Helper()
	t.Run("sim", func(t *testing.T) {
		tap := &frameTap{}
		w, _ := movingWorld(t, engine.Options{Tap: tap, RawPackets: true})
		test(t, w, tap)
	})
	t.Run("veth", func(t *testing.T) {
		tap := &frameTap{}
		test(t, taggedWorld(t, engine.Options{Tap: tap, RawPackets: true}), tap)
	})
	t.Run("kernel", func(t *testing.T) {
		tap := &frameTap{}
		w := vethWorld(t, vethpair.Options{}, engine.Options{Tap: tap, RawPackets: true})
		for i, side := range []vethpair.Side{vethpair.A, vethpair.B} {
			addVLAN(t, w.pair, side, vlanAddrs(i))
		}
		for i, d := range w.devs {
			for _, a := range vlanAddrs(i) {
				indexOf(t, d, a, true)
			}
			gidChange(t, d)
		}
		test(t, w, tap)
	})
}

// taggedWorld is a vethWorld with moving hosts. What Open does for the kernel's
// interfaces is done here for what the hosts say.
func taggedWorld(t *testing.T, o engine.Options) *world {
	t.Helper()
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(vethpair.Options{NoAddrs: true})
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
				Name: own.Name, Index: own.Ifindex, MAC: [6]byte(own.MAC), MTU: 1500, Up: true,
			}
			host := newMovingHost(i, port, [6]byte(other.MAC), program)
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

// addVLAN makes a VLAN interface with addresses on one end.
func addVLAN(t *testing.T, pair *vethpair.Pair, side vethpair.Side, addrs []netip.Addr) {
	t.Helper()
	in(t, pair, side, func(parent netlink.Link) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.ParentIndex = vethpair.IfName+".5", parent.Attrs().Index
		link := &netlink.Vlan{
			LinkAttrs: attrs, VlanId: testVLAN, VlanProtocol: netlink.VLAN_PROTOCOL_8021Q,
		}
		if err := netlink.LinkAdd(link); err != nil {
			if errors.Is(err, unix.EOPNOTSUPP) {
				t.Skip("SKIPPED: this kernel has no VLAN interfaces (CONFIG_VLAN_8021Q)")
			}
			return err
		}
		path := "/proc/sys/net/ipv6/conf/" + attrs.Name + "/accept_dad"
		if err := os.WriteFile(path, []byte("0"), 0); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
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
func vlanGIDs(t *testing.T, w *world, which int) (from [2]int) {
	t.Helper()
	for i, d := range w.devs {
		from[i] = indexOf(t, d, vlanAddrs(i)[which], true)
		e, err := d.QueryGID(from[i])
		if err != nil || e.VLAN != testVLAN || e.Type != engine.GIDRoCEv2 {
			t.Fatalf("%+v (%v)", e, err)
		}
	}
	return from
}

// tagsOf are the tags of RoCE frames; 0 is a frame without one.
func tagsOf(t *testing.T, frames [][]byte) map[uint16]int {
	t.Helper()
	tags := map[uint16]int{}
	for _, f := range frames {
		var p wire.Packet
		if r := p.Decode(f, nil); r != wire.OK || !p.VerifyICRC() {
			t.Fatalf("a frame came that is %s: % x", r, f)
		}
		tags[p.VLAN]++
	}
	return tags
}

// TestVLAN runs connections and datagrams on a VLAN: every frame has its tag with the
// service level as priority, and beside it others go without a tag.
func TestVLAN(t *testing.T) {
	vlanWorlds(t, func(t *testing.T, w *world, tap *frameTap) {
		var frames [][]byte
		for which := range vlanAddrs(0) {
			from := vlanGIDs(t, w, which)
			a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
			joinFrom(t, a, b, from, engine.ConnectOptions{SL: 3})
			c, d := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
			join(t, c, d, engine.ConnectOptions{SL: 3})
			tap.take()
			for _, op := range []roce.Opcode{
				roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm,
			} {
				transfer(t, w, a, b, op, 5000)
				transfer(t, w, b, a, op, 5000)
			}
			frames = append(frames, tap.take()...)
			if tags := tagsOf(t, frames); len(tags) != 1 || tags[3<<13|testVLAN] == 0 {
				t.Errorf("frames by tag: %x", tags)
			}
			transfer(t, w, c, d, roce.OpWrite, 5000)
			if tags := tagsOf(t, tap.take()); len(tags) != 1 || tags[0] == 0 {
				t.Errorf("frames of others by tag: %x", tags)
			}
		}
		tsharkAgrees(t, frames, "vlan.id==5 && vlan.priority==3")
	})
}

// TestForeignTagsAreDropped: a packet is for a GID only with the tag of its VLAN. The
// priority does not matter, and a tag of priority alone is none.
func TestForeignTagsAreDropped(t *testing.T) {
	vlanWorlds(t, func(t *testing.T, w *world, tap *frameTap) {
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
			good   []uint16 // tags that are taken
		}{
			{ah, []uint16{testVLAN, 7<<13 | testVLAN}},
			{a.handle(t, w.devs[1].GIDs()[gidIPv4], gidIPv4), []uint16{0, 7 << 13}},
		} {
			tap.take()
			a.send(t, a.datagram(c.handle, b.qp.QPN(), 10))
			w.succeed(b.cq, 1)
			frame := tap.take()[0]
			for _, tag := range []uint16{0, 7 << 13, testVLAN, 7<<13 | testVLAN, 6} {
				before := counterOf(t, w.devs[1], "drop_not_local")
				raw.post(t, copy(raw.mr.Bytes(), retag(frame, tag)))
				if slices.Contains(c.good, tag) {
					w.succeed(b.cq, 1)
					continue
				}
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
	for _, tag := range []uint16{6, testVLAN, 0} {
		raw.post(t, copy(raw.mr.Bytes(), retag(frame, tag)))
		if tag == 6 {
			w.run(func() bool { return counterOf(t, w.devs[1], "drop_multicast") == 1 })
		} else {
			w.succeed(b.cq, 1)
		}
	}
}

// retag gives a frame another tag; 0 is none.
func retag(frame []byte, tag uint16) []byte {
	f := bytes.Clone(frame)
	if binary.BigEndian.Uint16(f[12:]) == 0x8100 {
		f = slices.Delete(f, 12, 16)
	}
	if tag != 0 {
		f = slices.Insert(f, 12, 0x81, 0, byte(tag>>8), byte(tag))
	}
	return f
}

// TestConnectionKeepsItsVLAN drops packets of the peer with another tag.
func TestConnectionKeepsItsVLAN(t *testing.T) {
	vlanWorlds(t, func(t *testing.T, w *world, tap *frameTap) {
		raw := rawSeat(t, w.devs[0])
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		joinFrom(t, a, b, vlanGIDs(t, w, 0), engine.ConnectOptions{})
		tap.take()
		a.send(t, writeTo(a, b, roce.OpWrite, 100))
		w.succeed(a.cq, 1)
		frame := tap.take()[0]
		for i, tag := range []uint16{0, 6} {
			raw.post(t, copy(raw.mr.Bytes(), retag(frame, tag)))
			w.run(func() bool {
				return counterOf(t, w.devs[1], "drop_bad_source") == uint64(i+1)
			})
		}
		raw.post(t, copy(raw.mr.Bytes(), frame))
		w.run(func() bool { return counterOf(t, w.devs[1], "duplicate_request") == 1 })
	})
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
