package engine_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/roce"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

// in runs f in the namespace of one end, with the end's interface.
func in(t *testing.T, pair *vethpair.Pair, side vethpair.Side, f func(netlink.Link) error) {
	t.Helper()
	err := pair.Do(side, func() error {
		link, err := netlink.LinkByName(vethpair.IfName)
		if err != nil {
			return err
		}
		return f(link)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// addrOf is an address with the mask of a /24 or /64, in use at once.
func addrOf(a netip.Addr) *netlink.Addr {
	bits := 24
	if a.Is6() {
		bits = 64
	}
	return &netlink.Addr{
		IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())},
		Flags: unix.IFA_F_NODAD,
	}
}

// setAddr adds an address, or takes it away.
func setAddr(t *testing.T, pair *vethpair.Pair, side vethpair.Side, a netip.Addr, on bool) {
	t.Helper()
	in(t, pair, side, func(link netlink.Link) error {
		if on {
			return netlink.AddrAdd(link, addrOf(a))
		}
		return netlink.AddrDel(link, addrOf(a))
	})
}

// TestAddressesFollowTheKernel adds an address of each family to an open device,
// connects over it, and takes it away while traffic runs: that connection ends as
// with hardware, its packets are for the kernel again, and others do not notice.
func TestAddressesFollowTheKernel(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := vethWorld(t, vethpair.Options{}, engine.Options{})
	for i, added := range []netip.Addr{
		netip.MustParseAddr("10.99.1.1"), netip.MustParseAddr("fd99::1"),
	} {
		peer := added.Next()
		setAddr(t, w.pair, vethpair.A, added, true)
		setAddr(t, w.pair, vethpair.B, peer, true)
		from := [2]int{indexOf(t, w.devs[0], added, true), indexOf(t, w.devs[1], peer, true)}
		gidChange(t, w.devs[0])
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		other := [2]*seat{
			seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{}),
		}
		join(t, other[0], other[1], engine.ConnectOptions{})
		joinFrom(t, a, b, from, engine.ConnectOptions{Timeout: 16})
		for range 2 {
			b.send(t, writeTo(b, a, roce.OpWrite, 1000))
			w.succeed(b.cq, 1)
		}
		before := counterOf(t, w.devs[0], "drop_not_local")
		b.send(t, writeTo(b, a, roce.OpWrite, 100_000)) // under way
		w.run(func() bool { return b.qp.Snapshot().SendBegun > 0 })
		setAddr(t, w.pair, vethpair.A, added, false)
		indexOf(t, w.devs[0], added, false)
		gidChange(t, w.devs[0])
		if wc := w.take(b.cq, 1)[0]; wc.Status == roce.StatusSuccess {
			// It was over before the address went.
			b.send(t, writeTo(b, a, roce.OpWrite, 100))
			wc = w.take(b.cq, 1)[0]
			if wc.Status != roce.StatusRetryExcErr {
				t.Errorf("%s: %s", added, wc.Status)
			}
		} else if wc.Status != roce.StatusRetryExcErr {
			t.Errorf("%s: %s", added, wc.Status)
		}
		a.send(t, writeTo(a, b, roce.OpWrite, 100))
		if wc := w.take(a.cq, 1)[0]; wc.Status != roce.StatusRetryExcErr {
			t.Errorf("%s: %s", added, wc.Status)
		}
		other[0].send(t, writeTo(other[0], other[1], roce.OpWrite, 1000))
		w.succeed(other[0].cq, 1)
		// What was in the ring when the address went may count here, no more.
		if n := counterOf(t, w.devs[0], "drop_not_local") - before; n > 256 {
			t.Errorf("%d packets for %s still come", n, added)
		}

		setAddr(t, w.pair, vethpair.A, added, true)
		if again := indexOf(t, w.devs[0], added, true); again != from[0] {
			t.Errorf("%s comes back at index %d, was at %d", added, again, from[0])
		}
		gidChange(t, w.devs[0])
		c, d := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		joinFrom(t, c, d, from, engine.ConnectOptions{})
		d.send(t, writeTo(d, c, roce.OpWrite, 1000))
		w.succeed(d.cq, 1)
		if got, err := w.devs[0].SourceGID(peer); got != from[0] || err != nil {
			t.Errorf("round %d: to %s from index %d (%v), want %d", i, peer, got, err, from[0])
		}
	}
	if _, err := w.devs[0].SourceGID(netip.MustParseAddr("203.0.113.1")); err == nil {
		t.Error("there is a way to an address without a route")
	}
	if _, err := w.devs[0].SourceGID(netip.MustParseAddr("127.0.0.1")); err == nil {
		t.Error("the loopback interface is the device's")
	}
}

// TestRemovedAddressIsTheKernels asks at the kernel: a UDP socket on the RoCE port
// gets what is sent to an address that was added and removed, and to one that never
// was the device's nothing is changed.
func TestRemovedAddressIsTheKernels(t *testing.T) {
	w := vethWorld(t, vethpair.Options{}, engine.Options{})
	added := netip.MustParseAddr("10.99.1.1")
	setAddr(t, w.pair, vethpair.A, added, true)
	indexOf(t, w.devs[0], added, true)
	gidChange(t, w.devs[0])
	// The address goes to the loopback interface, so the kernel still has it.
	in(t, w.pair, vethpair.A, func(link netlink.Link) error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.AddrDel(link, addrOf(added)); err != nil {
			return err
		}
		return netlink.AddrAdd(lo, addrOf(added))
	})
	indexOf(t, w.devs[0], added, false)
	gidChange(t, w.devs[0])
	var server, client net.PacketConn
	listen := func(side vethpair.Side, conn *net.PacketConn, addr string) {
		in(t, w.pair, side, func(netlink.Link) (err error) {
			*conn, err = net.ListenPacket("udp4", addr)
			return err
		})
		t.Cleanup(func() { _ = (*conn).Close() })
	}
	listen(vethpair.A, &server, "10.99.1.1:4791")
	in(t, w.pair, vethpair.B, func(link netlink.Link) error {
		return netlink.RouteAdd(&netlink.Route{
			LinkIndex: link.Attrs().Index, Gw: w.pair.A.IPv4.Addr().AsSlice(),
			Dst: &net.IPNet{IP: added.AsSlice(), Mask: net.CIDRMask(32, 32)},
		})
	})
	listen(vethpair.B, &client, "0.0.0.0:0")
	if _, err := client.WriteTo([]byte("to the kernel"), &net.UDPAddr{
		IP: added.AsSlice(), Port: 4791,
	}); err != nil {
		t.Fatal(err)
	}
	if err := server.SetReadDeadline(time.Now().Add(timeout.Scaled(20 * time.Second))); err != nil {
		t.Fatal(err)
	}
	if n, _, err := server.ReadFrom(make([]byte, 64)); n != 13 || err != nil {
		t.Errorf("%d bytes came to the kernel (%v)", n, err)
	}
}

// TestNeighbourFollowsTheKernel changes a neighbour's MAC address in the kernel's
// table under a connection. When the entry is deleted, the device has the kernel ask
// the network, and learns the true one.
func TestNeighbourFollowsTheKernel(t *testing.T) {
	w := vethWorld(t, vethpair.Options{}, engine.Options{})
	for index, peer := range map[int]netip.Addr{
		gidIPv4: w.pair.B.IPv4.Addr(), gidIPv6: w.pair.B.IPv6.Addr(),
	} {
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		join(t, a, b, engine.ConnectOptions{SGIDIndex: index})
		moved := [6]byte{2, 0, 0, 0, 0, 0x77}
		for _, mac := range [][6]byte{moved, w.devs[1].Port().MAC} {
			in(t, w.pair, vethpair.A, func(link netlink.Link) error {
				n := &netlink.Neigh{
					LinkIndex: link.Attrs().Index, IP: peer.AsSlice(), HardwareAddr: moved[:],
					State: netlink.NUD_PERMANENT,
				}
				if mac == moved {
					return netlink.NeighSet(n)
				}
				return netlink.NeighDel(n)
			})
			eventually(t, "the path follows the neighbour", func() bool {
				return a.qp.Query().Path.DstMAC == mac
			})
		}
		a.send(t, writeTo(a, b, roce.OpWrite, 1000)) // what is sent to another one is not taken
		w.succeed(a.cq, 1)
	}
}

// TestStaleNeighbourIsProbed: the kernel sees none of the device's packets, so an
// entry that nobody confirmed would stay as it is for ever, right or wrong. The device
// has the kernel find out.
func TestStaleNeighbourIsProbed(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := vethWorld(t, vethpair.Options{}, engine.Options{})
	peer := w.pair.B.IPv4.Addr()
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	moved := [6]byte{2, 0, 0, 0, 0, 0x78}
	in(t, w.pair, vethpair.A, func(link netlink.Link) error {
		// Or it would take the kernel eight seconds. The wrong path is there for three.
		dir := "/proc/sys/net/ipv4/neigh/" + vethpair.IfName + "/"
		for file, value := range map[string]string{
			"delay_first_probe_time": "3", "retrans_time_ms": "20",
		} {
			if err := os.WriteFile(dir+file, []byte(value), 0); err != nil {
				return err
			}
		}
		return netlink.NeighSet(&netlink.Neigh{
			LinkIndex: link.Attrs().Index, IP: peer.AsSlice(), HardwareAddr: moved[:],
			State: netlink.NUD_STALE,
		})
	})
	for _, mac := range [][6]byte{moved, w.devs[1].Port().MAC} {
		eventually(t, fmt.Sprintf("the path goes to % x", mac), func() bool {
			return a.qp.Query().Path.DstMAC == mac
		})
	}
}
