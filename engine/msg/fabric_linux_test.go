package msg_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// A place is a network namespace.
type place struct {
	pair *vethpair.Pair
	side vethpair.Side
}

// do runs f inside.
func (p place) do(t testing.TB, f func() error) {
	t.Helper()
	must(t, p.pair.Do(p.side, f))
}

// A fabric is namespaces that are joined by switches, one a rail: node i has an interface xr0 in
// the first, at 10.0.0.(i+1), xr1 in the second, at 10.0.1.(i+1), and so on. The switches are
// bridges in a namespace of their own.
type fabric struct {
	t     testing.TB
	nodes []place
	hub   place
}

// newFabric makes one.
func newFabric(t testing.TB, nodes, rails int) *fabric {
	t.Helper()
	xsktest.NeedRoot(t)
	f := &fabric{t: t}
	var all []place
	for len(all) <= nodes {
		pair, err := vethpair.New(vethpair.Options{NoAddrs: true})
		must(t, err)
		t.Cleanup(func() { must(t, pair.Close()) })
		// Its namespaces are what is wanted, without the wire between them.
		must(t, pair.Do(vethpair.A, func() error {
			l, err := netlink.LinkByName(vethpair.IfName)
			if err != nil {
				return err
			}
			return netlink.LinkDel(l)
		}))
		all = append(all, place{pair, vethpair.A}, place{pair, vethpair.B})
	}
	f.nodes, f.hub = all[:nodes], all[nodes]
	for rail := range rails {
		f.hub.do(t, func() error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = fmt.Sprint("br", rail)
			bridge := &netlink.Bridge{LinkAttrs: attrs}
			if err := netlink.LinkAdd(bridge); err != nil {
				return err
			}
			return netlink.LinkSetUp(bridge)
		})
		for node := range f.nodes {
			f.plug(node, rail)
		}
	}
	return f
}

// port is the name of the interface of a switch that a node is plugged into.
func port(node, rail int) string { return fmt.Sprintf("n%dr%d", node, rail) }

// addrOf is the address of a node in a rail.
func addrOf(node, rail int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(rail), byte(node + 1)})
}

// plug makes the wire between a node and a switch.
func (f *fabric) plug(node, rail int) {
	f.t.Helper()
	p := f.nodes[node]
	ns, err := os.Open("/run/netns/" + p.pair.End(p.side).Namespace)
	must(f.t, err)
	defer ns.Close()
	name := fmt.Sprint("xr", rail)
	f.hub.do(f.t, func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.TxQLen = port(node, rail), vethpair.DefaultPfifoLimit
		veth := netlink.NewVeth(attrs)
		veth.PeerName, veth.PeerNamespace = name, netlink.NsFd(int(ns.Fd()))
		veth.PeerTxQLen = vethpair.DefaultPfifoLimit
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		l, err := prepare(port(node, rail))
		if err != nil {
			return err
		}
		bridge, err := netlink.LinkByName(fmt.Sprint("br", rail))
		if err != nil {
			return err
		}
		if err := netlink.LinkSetMaster(l, bridge); err != nil {
			return err
		}
		return netlink.LinkSetUp(l)
	})
	p.do(f.t, func() error {
		l, err := prepare(name)
		if err != nil {
			return err
		}
		err = netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{
			IP: addrOf(node, rail).AsSlice(), Mask: net.CIDRMask(24, 32),
		}})
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(l)
	})
	f.await(node, rail)
}

// await waits until a wire between a node and a switch is one: the kernel is late on a busy host.
func (f *fabric) await(node, rail int) {
	f.t.Helper()
	for name, p := range map[string]place{
		fmt.Sprint("xr", rail): f.nodes[node], port(node, rail): f.hub,
	} {
		p.do(f.t, func() error { return vethpair.AwaitOperational(name) })
	}
}

// prepare makes an end of a wire one that loses no frames and sends none of its own: see package
// vethpair.
func prepare(name string) (netlink.Link, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return nil, err
	}
	path := "/proc/sys/net/ipv6/conf/" + name + "/disable_ipv6"
	if err := os.WriteFile(path, []byte("1"), 0); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil, err
	}
	defer e.Close()
	off := map[string]bool{"tx-checksum-ip-generic": false, "tx-checksum-sctp": false}
	if err := e.Change(name, off); err != nil {
		return nil, err
	}
	return l, netlink.QdiscAdd(&netlink.GenericQdisc{
		QdiscType: "pfifo", QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0),
			Parent: netlink.HANDLE_ROOT,
		},
	})
}

// setUp plugs a node into a switch, or out of it: the node has no carrier then.
func (f *fabric) setUp(node, rail int, up bool) {
	f.t.Helper()
	f.hub.do(f.t, func() error {
		l, err := netlink.LinkByName(port(node, rail))
		if err != nil {
			return err
		}
		if up {
			return netlink.LinkSetUp(l)
		}
		return netlink.LinkSetDown(l)
	})
}

// lose has the switches lose one frame of so many that nodes send, drawn, until the end of the
// test.
func (f *fabric) lose(of int32) {
	f.t.Helper()
	const xdpDrop, xdpPass = 1, 2
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP, License: "Dual MIT/GPL", Instructions: asm.Instructions{
			asm.FnGetPrandomU32.Call(),
			asm.Mod.Imm32(asm.R0, of),
			asm.JEq.Imm32(asm.R0, 0, "drop"),
			asm.Mov.Imm(asm.R0, xdpPass),
			asm.Return(),
			asm.Mov.Imm(asm.R0, xdpDrop).WithSymbol("drop"),
			asm.Return(),
		},
	})
	must(f.t, err)
	f.t.Cleanup(func() { must(f.t, prog.Close()) })
	f.hub.do(f.t, func() error {
		for node := range f.nodes {
			l, err := netlink.LinkByName(port(node, 0))
			if err != nil {
				return err
			}
			at, err := link.AttachXDP(link.XDPOptions{
				Program: prog, Interface: l.Attrs().Index, Flags: link.XDPDriverMode,
			})
			if err != nil {
				return err
			}
			f.t.Cleanup(func() { _ = at.Close() }) // the interface may be gone
		}
		return nil
	})
}

// reorder has what goes to nodes come out of order, and reports whether the kernel can.
func (f *fabric) reorder() error {
	return f.hub.pair.Do(f.hub.side, func() error {
		for node := range f.nodes {
			l, err := netlink.LinkByName(port(node, 0))
			if err != nil {
				return err
			}
			err = netlink.QdiscReplace(netlink.NewNetem(netlink.QdiscAttrs{
				LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(2, 0),
				Parent: netlink.HANDLE_ROOT,
			}, netlink.NetemQdiscAttrs{
				Limit: 10_000, Latency: 200, Loss: 0.5, ReorderProb: 5, Duplicate: 1,
			}))
			if err != nil {
				return err
			}
		}
		return nil
	})
}
