package host

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"xroce/roce/wire"
)

// vlanMessage is what the kernel says of a VLAN on an interface, without its header.
func vlanMessage(index, on int, name string, id uint16, protocol ...uint16) []byte {
	info := nl.NewIfInfomsg(unix.AF_UNSPEC)
	info.Index = int32(index)
	b := info.Serialize()
	attr := func(kind int, data []byte) *nl.RtAttr { return nl.NewRtAttr(kind, data) }
	for _, a := range []*nl.RtAttr{
		attr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)), attr(unix.IFLA_MTU, nl.Uint32Attr(1500)),
		attr(unix.IFLA_ADDRESS, []byte{2, 0, 0, 0, 0, 7}),
		attr(unix.IFLA_LINK, nl.Uint32Attr(uint32(on))), vlanInfo(id, protocol...),
	} {
		b = append(b, a.Serialize()...)
	}
	return b
}

// vlanInfo is the attribute that makes a message one about a VLAN.
func vlanInfo(id uint16, protocol ...uint16) *nl.RtAttr {
	kind := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	kind.AddRtAttr(nl.IFLA_INFO_KIND, nl.ZeroTerminated("vlan"))
	data := kind.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	data.AddRtAttr(nl.IFLA_VLAN_ID, nl.Uint16Attr(id))
	for _, p := range protocol { // in network byte order
		data.AddRtAttr(nl.IFLA_VLAN_PROTOCOL, binary.BigEndian.AppendUint16(nil, p))
	}
	return kind
}

// stopped is a watch that takes messages from the test alone.
func stopped(t *testing.T) *watched {
	t.Helper()
	w := watch(t)
	w.close()
	w.do(func() (err error) {
		w.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	t.Cleanup(w.handle.Close)
	return w
}

// took hands a message that is about something of ours to a stopped watch, and returns the port.
func (w *watched) took(kind uint16, data []byte) Port {
	w.t.Helper()
	if !w.look(kind, data) {
		w.t.Errorf("message %d is taken for none of ours", kind)
	}
	return w.port()
}

// TestLookStackedVLANs has VLANs come on VLANs, and go, by messages alone: of 802.1Q and 802.1ad,
// not three deep, and none whose lower one is gone.
func TestLookStackedVLANs(t *testing.T) {
	w := stopped(t)
	const index = 1 << 20
	const service, customer = wire.TPIDService, wire.TPIDCustomer
	for _, m := range [][]byte{
		vlanMessage(index, w.index, "s", 100, service),
		vlanMessage(index+1, index, "s.5", 5, customer),
		vlanMessage(index+2, w.index, "q", 100, customer), vlanMessage(index+3, index+2, "q.5", 5),
	} {
		w.took(unix.RTM_NEWLINK, m)
	}
	names := func(p Port) (list []string) {
		for _, v := range p.VLANs {
			list = append(list, v.Name+" "+v.ID.String())
		}
		return list
	}
	want := []string{"s s100", "s.5 s100.5", "q 100", "q.5 100.5"}
	if diff := cmp.Diff(want, names(w.port())); diff != "" {
		t.Error(diff)
	}
	// Three deep.
	if w.look(unix.RTM_NEWLINK, vlanMessage(index+4, index+3, "q.5.6", 6)) {
		t.Error("three tags are taken")
	}
	if w.missed {
		t.Error("everything is read again without need")
	}
	// What a kernel says when an interface goes on which there is one.
	w.took(unix.RTM_DELLINK, vlanMessage(index, w.index, "s", 100, service))
	if !w.missed {
		t.Error("nobody asks what has become of a VLAN whose lower one is gone")
	}
	last := w.took(unix.RTM_NEWLINK, vlanMessage(index+1, index, "s.5", 5, customer))
	if diff := cmp.Diff(want[2:], names(last)); diff != "" {
		t.Error(diff)
	}
}

// TestVLANsOfADump finds VLANs and those on them among all interfaces, in whatever order.
func TestVLANsOfADump(t *testing.T) {
	link := func(index, on, id int, protocol netlink.VlanProtocol) netlink.Link {
		return &netlink.Vlan{
			LinkAttrs: netlink.LinkAttrs{
				Index: index, ParentIndex: on, Name: fmt.Sprint(index), NetNsID: sameNamespace,
			},
			VlanId: id, VlanProtocol: protocol,
		}
	}
	const customer, service = netlink.VLAN_PROTOCOL_8021Q, netlink.VLAN_PROTOCOL_8021AD
	links := []netlink.Link{
		link(9, 5, 6, customer), link(8, 2, 100, service), link(7, 8, 5, customer),
		link(6, 7, 4, customer), link(5, 3, 7, customer),
		&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: 3}},
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	list, err := readVLANs(handle, links, 2)
	if err != nil {
		t.Fatal(err)
	}
	outer := wire.NewVLAN(wire.TPIDService, 100)
	inner, _ := wire.VLAN(5).Behind(outer)
	want := []VLAN{{ID: inner, Name: "7", Index: 7}, {ID: outer, Name: "8", Index: 8}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

// TestLookVLANs has a VLAN come, change and go, by messages alone. A kernel without
// CONFIG_VLAN_8021Q has none, so these are made here.
func TestLookVLANs(t *testing.T) {
	w := stopped(t)
	const index = 1 << 20 // of no interface: no address is found
	look := func(kind uint16, data []byte) []VLAN { return w.took(kind, data).VLANs }
	first := look(unix.RTM_NEWLINK, vlanMessage(index, w.index, "v7", 7))
	want := []VLAN{{ID: 7, Name: "v7", Index: index, MAC: [6]byte{2, 0, 0, 0, 0, 7}}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	// Another, made before, and one that is on another interface.
	second := look(unix.RTM_NEWLINK, vlanMessage(index-1, w.index, "v9", 9))
	if len(second) != 2 || second[0].ID != 9 || second[1].ID != 7 {
		t.Errorf("two VLANs: %+v", second)
	}
	if w.look(unix.RTM_NEWLINK, vlanMessage(index+1, w.index+1, "v8", 8)) {
		t.Error("a VLAN of another interface is taken for one of ours")
	}
	renamed := look(unix.RTM_NEWLINK, vlanMessage(index, w.index, "other", 7))
	if len(renamed) != 2 || renamed[1].Name != "other" || second[1].Name != "v7" {
		t.Errorf("renamed: %+v, and the list that was given out: %+v", renamed, second)
	}
	left := look(unix.RTM_DELLINK, vlanMessage(index, w.index, "other", 7))
	if len(left) != 1 || left[0].ID != 9 || len(second) != 2 || second[0].ID != 9 {
		t.Errorf("one is deleted: %+v, and the list that was given out: %+v", left, second)
	}
}
