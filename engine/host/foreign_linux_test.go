package host

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

// An upperKind is a kind of interface on another one. A kernel without CONFIG_VLAN_8021Q has no
// VLANs, but says the same of what a macvlan is on: that is taken for a VLAN.
type upperKind struct {
	name string
	make func(netlink.LinkAttrs) netlink.Link
	// A link that is one as if it were a VLAN, in a dump and in the message about it.
	read func(netlink.Link) netlink.Link
	told func(link netlink.Link, data []byte) []byte
}

var upperKinds = []upperKind{
	{
		name: "VLAN",
		make: func(a netlink.LinkAttrs) netlink.Link {
			return &netlink.Vlan{LinkAttrs: a, VlanId: 5}
		},
		read: func(l netlink.Link) netlink.Link { return l },
		told: func(_ netlink.Link, data []byte) []byte { return data },
	},
	{
		name: "macvlan",
		make: func(a netlink.LinkAttrs) netlink.Link {
			return &netlink.Macvlan{LinkAttrs: a, Mode: netlink.MACVLAN_MODE_BRIDGE}
		},
		read: func(l netlink.Link) netlink.Link {
			if l.Type() != "macvlan" {
				return l
			}
			return &netlink.Vlan{LinkAttrs: *l.Attrs(), VlanId: 5}
		},
		told: func(l netlink.Link, data []byte) []byte {
			if l.Type() != "macvlan" {
				return data
			}
			// Of two attributes of a type the last one counts.
			return append(slices.Clone(data), vlanInfo(5).Serialize()...)
		},
	},
}

// TestVLANOfAnotherNamespace moves a VLAN to where the port is, whose interface stays in another
// namespace and has the index of the port there. It is none of the port's, neither by messages nor
// in a dump; one that is made on the port is.
func TestVLANOfAnotherNamespace(t *testing.T) {
	for _, k := range upperKinds {
		t.Run(k.name, func(t *testing.T) {
			w := stopped(t)
			if a, b := w.pair.A.Ifindex, w.index; a != b {
				t.Fatalf("the interfaces have the indices %d and %d, not one", a, b)
			}
			heard := w.subscribe()
			w.moveIn(k, "moved")
			w.do(func() error { return addUpper(k, w.index, "own") })
			w.lookUntil(heard, k, "own")
			want := []string{"own"}
			if diff := cmp.Diff(want, vlanNames(w.port().VLANs)); diff != "" {
				t.Errorf("by messages: %s", diff)
			}
			var dump []netlink.Link
			w.do(func() (err error) {
				dump, err = netlink.LinkList()
				return err
			})
			foreign := 0
			for i, l := range dump {
				if l.Attrs().Name == "moved" {
					foreign = l.Attrs().ParentIndex
				}
				dump[i] = k.read(l)
			}
			if foreign != w.index {
				t.Errorf("what was moved is on %d there, want the index of the port, %d", foreign,
					w.index)
			}
			if diff := cmp.Diff(want, vlanNames(vlansOn(Port{Index: w.index}, dump))); diff != "" {
				t.Errorf("in a dump: %s", diff)
			}
		})
	}
}

// TestLookForeignVLAN has messages say that what a VLAN is on is in another namespace: from the
// beginning, and once it has been on the port. The kernel says -1 of a namespace for which it has
// no number.
func TestLookForeignVLAN(t *testing.T) {
	w := stopped(t)
	const index = 1 << 20
	for _, ns := range []int32{0, 7, -1} {
		own := vlanMessage(index, w.index, "v7", 7)
		foreign := append(slices.Clone(own),
			nl.NewRtAttr(unix.IFLA_LINK_NETNSID, nl.Uint32Attr(uint32(ns))).Serialize()...)
		if w.look(unix.RTM_NEWLINK, foreign) || len(w.port().VLANs) != 0 {
			t.Errorf("namespace %d: it is taken for one of ours: %+v", ns, w.port().VLANs)
		}
		if list := w.took(unix.RTM_NEWLINK, own).VLANs; len(list) != 1 {
			t.Errorf("one of ours: %+v", list)
		}
		if list := w.took(unix.RTM_NEWLINK, foreign).VLANs; len(list) != 0 {
			t.Errorf("namespace %d: it stays one of ours: %+v", ns, list)
		}
	}
}

// TestLowerVLANMovesAway moves a VLAN to another namespace, without the one on it: of that the
// kernel says nothing.
func TestLowerVLANMovesAway(t *testing.T) {
	w := watch(t)
	ns := w.openNamespace(vethpair.A)
	w.makeUppers(vethpair.B, func() error {
		if err := addUpper(upperKinds[0], w.index, "lower"); err != nil {
			return err
		}
		lower, err := netlink.LinkByName("lower")
		if err != nil {
			return err
		}
		return addUpper(upperKinds[0], lower.Attrs().Index, "upper")
	})
	w.await("two VLANs", func(p Port) bool { return len(p.VLANs) == 2 })
	w.do(func() error {
		lower, err := netlink.LinkByName("lower")
		if err != nil {
			return err
		}
		return netlink.LinkSetNsFd(lower, ns)
	})
	w.await("no VLAN", func(p Port) bool { return len(p.VLANs) == 0 })
}

// subscribe has a socket hear of interfaces where the port is.
func (w *watched) subscribe() (heard *nl.NetlinkSocket) {
	w.t.Helper()
	w.do(func() (err error) {
		heard, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
		return err
	})
	w.t.Cleanup(heard.Close)
	limit := unix.NsecToTimeval(int64(timeout.Scaled(10 * time.Second)))
	if err := heard.SetReceiveTimeout(&limit); err != nil {
		w.t.Fatal(err)
	}
	return heard
}

// lookUntil hands what a socket hears to a stopped watch, until that was about an interface.
func (w *watched) lookUntil(heard *nl.NetlinkSocket, k upperKind, name string) {
	w.t.Helper()
	for {
		messages, _, err := heard.Receive()
		if err != nil {
			w.t.Fatalf("%s never comes: %v", name, err)
		}
		for _, m := range messages {
			link, err := netlink.LinkDeserialize(nil, m.Data)
			if err != nil {
				w.t.Fatal(err)
			}
			w.look(m.Header.Type, k.told(link, m.Data))
			if link.Attrs().Name == name {
				return
			}
		}
	}
}

// moveIn makes an interface on the other end of the pair, and moves it to where the port is.
func (w *watched) moveIn(k upperKind, name string) {
	w.t.Helper()
	ns := w.openNamespace(vethpair.B)
	w.makeUppers(vethpair.A, func() error {
		if err := addUpper(k, w.pair.A.Ifindex, name); err != nil {
			return err
		}
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkSetNsFd(link, ns)
	})
}

// openNamespace opens that of an end of the pair, for the time of the test.
func (w *watched) openNamespace(s vethpair.Side) (fd int) {
	w.t.Helper()
	ns, err := os.Open("/run/netns/" + w.pair.End(s).Namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { ns.Close() })
	return int(ns.Fd())
}

// makeUppers makes interfaces at an end of the pair, or skips where the kernel has none of them.
func (w *watched) makeUppers(s vethpair.Side, f func() error) {
	w.t.Helper()
	switch err := w.pair.Do(s, f); {
	case errors.Is(err, unix.EOPNOTSUPP):
		w.t.Skip("SKIPPED: this kernel has no such interfaces (CONFIG_VLAN_8021Q, CONFIG_MACVLAN)")
	case err != nil:
		w.t.Fatal(err)
	}
}

// addUpper makes an interface on another one of the thread's namespace.
func addUpper(k upperKind, on int, name string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex = name, on
	return netlink.LinkAdd(k.make(attrs))
}

// vlanNames are the names of VLANs.
func vlanNames(list []VLAN) (names []string) {
	for _, v := range list {
		names = append(names, v.Name)
	}
	return names
}
