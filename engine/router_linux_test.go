package engine_test

import (
	"fmt"
	"net/netip"
	"os"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"

	"xroce/engine"
	"xroce/engine/capture"
	"xroce/roce/wire"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// A hopTap keeps the hop limits and the tags of the packets that came.
type hopTap struct {
	mu    sync.Mutex
	hops  map[uint8]int
	tags  map[wire.VLAN]int
	kinds map[wire.Framing]int
}

func newHopTap() *hopTap {
	return &hopTap{hops: map[uint8]int{}, tags: map[wire.VLAN]int{}, kinds: map[wire.Framing]int{}}
}

func (h *hopTap) Frame(dir capture.Direction, head, tail []byte) {
	var p wire.Packet
	if dir != capture.Inbound || p.Decode(head, tail) != wire.OK || !p.VerifyICRC() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hops[p.HopLimit]++
	h.tags[p.Tags.VLAN()]++
	h.kinds[p.Framing]++
}

// routedPair makes three namespaces: the A end of the first pair, a router, and the
// B end of the second. The router forwards between the two networks.
func routedPair(t *testing.T) (near, far *vethpair.Pair) {
	t.Helper()
	xsktest.NeedRoot(t)
	var pairs [2]*vethpair.Pair
	for i := range pairs {
		pair, err := vethpair.New(vethpair.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := pair.Close(); err != nil {
				t.Error(err)
			}
		})
		pairs[i] = pair
	}
	near, far = pairs[0], pairs[1]
	const second = "xr1"
	// The A end of the second pair moves to where the B end of the first is.
	router, err := os.Open("/run/netns/" + near.B.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	in(t, far, vethpair.A, func(link netlink.Link) error {
		if err := netlink.LinkSetDown(link); err != nil {
			return err
		}
		if err := netlink.LinkSetName(link, second); err != nil {
			return err
		}
		return netlink.LinkSetNsFd(link, int(router.Fd()))
	})
	in(t, near, vethpair.B, func(netlink.Link) error {
		link, err := netlink.LinkByName(second)
		if err != nil {
			return err
		}
		// The move took the queueing discipline away, without which frames are lost.
		queue := &netlink.GenericQdisc{QdiscType: "pfifo", QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0),
			Parent: netlink.HANDLE_ROOT,
		}}
		if err := netlink.QdiscReplace(queue); err != nil {
			return err
		}
		for _, a := range []netip.Addr{far.A.IPv4.Addr(), far.A.IPv6.Addr()} {
			if err := netlink.AddrAdd(link, addrOf(a)); err != nil {
				return err
			}
		}
		for file, value := range map[string]string{
			"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1",
			"ipv6/conf/" + second + "/accept_dad": "0", // solicits at once
		} {
			if err := os.WriteFile("/proc/sys/net/"+file, []byte(value), 0); err != nil {
				return err
			}
		}
		return netlink.LinkSetUp(link)
	})
	addRoutes(t, near, vethpair.A, &far.B, &near.B)
	addRoutes(t, far, vethpair.B, &near.A, &far.A)
	return near, far
}

// addRoutes routes the networks of an end by a gateway.
func addRoutes(t *testing.T, pair *vethpair.Pair, side vethpair.Side, to, by *vethpair.End) {
	t.Helper()
	in(t, pair, side, func(link netlink.Link) error {
		for _, r := range [][2]netip.Addr{
			{to.IPv4.Addr(), by.IPv4.Addr()}, {to.IPv6.Addr(), by.IPv6.Addr()},
		} {
			dst := addrOf(r[0]).IPNet
			dst.IP = dst.IP.Mask(dst.Mask)
			err := netlink.RouteReplace(&netlink.Route{
				LinkIndex: link.Attrs().Index, Dst: dst, Gw: r[1].AsSlice(),
			})
			if err != nil {
				return fmt.Errorf("route to %s by %s: %w", dst, r[1], err)
			}
		}
		return nil
	})
}

// TestThroughARouter connects two devices that a router lies between: packets go to
// the router's MAC address and come with one hop less, and when the route changes
// under a connection, the connection goes the new way.
func TestThroughARouter(t *testing.T) {
	near, far := routedPair(t)
	tap := newHopTap()
	devs := [2]*engine.Device{
		openIn(t, near, vethpair.A, engine.Options{}),
		openIn(t, far, vethpair.B, engine.Options{Tap: tap}),
	}
	routerMAC := [6]byte(near.B.MAC)
	for _, index := range []int{gidIPv4, gidIPv6} {
		a, b := newSide(t, devs[0]), newSide(t, devs[1])
		o := engine.ConnectOptions{SGIDIndex: index, Timeout: patientTimeout}
		for _, c := range []struct{ from, to *side }{{a, b}, {b, a}} {
			to := c.to.end
			to.GID = c.to.dev.GIDs()[index]
			if err := c.from.qp.Connect(t.Context(), c.from.end, to, o); err != nil {
				t.Fatal(err)
			}
		}
		if mac := a.qp.Query().Path.DstMAC; mac != routerMAC {
			t.Errorf("index %d: packets go to % x, the router is % x", index, mac, routerMAC)
		}
		for _, size := range []int{1, 4096, regionSize} {
			exchange(t, a, b, size)
			exchange(t, b, a, size)
		}
		if got, err := devs[0].SourceGID(devs[1].GIDs()[index].Addr()); got != index || err != nil {
			t.Errorf("source of index %d is %d (%v)", index, got, err)
		}
		changeRoute(t, near, far, a)
		exchange(t, a, b, regionSize)
	}
	tap.mu.Lock()
	defer tap.mu.Unlock()
	if len(tap.hops) != 1 || tap.hops[63] == 0 {
		t.Errorf("packets by hop limit: %v, want 63 alone", tap.hops)
	}
	// RoCE v1 does not go through it.
	_, err := devs[0].ResolvePath(t.Context(), engine.AddressVector{
		DGID: devs[1].GIDs()[gidIPv4], SGIDIndex: gidIPv4 + engine.GIDTableLen/2,
	})
	if err == nil {
		t.Error("RoCE v1 was routed")
	}
}

// changeRoute leads the route of one end to a gateway that is nowhere, and back.
func changeRoute(t *testing.T, near, far *vethpair.Pair, a *side) {
	t.Helper()
	nowhere := [6]byte{2, 0, 0, 0, 0, 0x66}
	by := near.B
	by.IPv4 = netip.PrefixFrom(near.B.IPv4.Addr().Next(), 24)
	by.IPv6 = netip.PrefixFrom(near.B.IPv6.Addr().Next(), 64)
	in(t, near, vethpair.A, func(link netlink.Link) error {
		for _, gw := range []netip.Addr{by.IPv4.Addr(), by.IPv6.Addr()} {
			err := netlink.NeighSet(&netlink.Neigh{
				LinkIndex: link.Attrs().Index, IP: gw.AsSlice(), HardwareAddr: nowhere[:],
				State: netlink.NUD_PERMANENT,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	addRoutes(t, near, vethpair.A, &far.B, &by)
	eventually(t, "the path follows the route", func() bool {
		return a.qp.Query().Path.DstMAC == nowhere
	})
	addRoutes(t, near, vethpair.A, &far.B, &near.B)
	eventually(t, "the path follows the route back", func() bool {
		return a.qp.Query().Path.DstMAC == [6]byte(near.B.MAC)
	})
}
