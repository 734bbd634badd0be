package host

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/roce/wire"
)

// ReadPort describes an interface of the thread's network namespace, with its VLANs,
// as Open would. It needs no privilege.
func ReadPort(index int) (Port, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return Port{}, fmt.Errorf("host: rtnetlink: %w", err)
	}
	defer handle.Close()
	return readPort(handle, index)
}

// dumpTries is how often a dump is begun anew that something else changed under. The
// kernel marks such a dump; a try takes a millisecond at most.
const dumpTries = 16

// undisturbed repeats what reads a dump until nothing has changed under it.
func undisturbed(read func() error) (err error) {
	for range dumpTries {
		if err = read(); !disturbed(err) {
			return err
		}
	}
	return err
}

// disturbed reports whether something has changed while it was read.
func disturbed(err error) bool { return errors.Is(err, netlink.ErrDumpInterrupted) }

// readPort describes one interface of the handle's namespace with its VLANs.
func readPort(handle *netlink.Handle, index int) (Port, error) {
	link, err := handle.LinkByIndex(index)
	if err != nil {
		return Port{}, fmt.Errorf("host: interface %d: %w", index, err)
	}
	var port Port
	describePort(&port, link.Attrs())
	if port.Addrs, err = readAddrs(handle, link); err != nil {
		return Port{}, err
	}
	var links []netlink.Link
	err = undisturbed(func() (err error) {
		links, err = handle.LinkList()
		return err
	})
	if err != nil {
		return Port{}, fmt.Errorf("host: interfaces: %w", err)
	}
	port.VLANs, err = readVLANs(handle, links, index)
	return port, err
}

// describePort takes over what an interface says of itself.
func describePort(port *Port, attrs *netlink.LinkAttrs) {
	port.Name, port.Index, port.MTU = attrs.Name, attrs.Index, attrs.MTU
	port.Up = attrs.Flags&net.FlagUp != 0
	copy(port.MAC[:], attrs.HardwareAddr)
}

// readAddrs lists the addresses of an interface that may be used: not those for
// which duplicate address detection is not finished, or has failed.
func readAddrs(handle *netlink.Handle, link netlink.Link) ([]netip.Addr, error) {
	var list []netlink.Addr
	err := undisturbed(func() (err error) {
		list, err = handle.AddrList(link, netlink.FAMILY_ALL)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("host: addresses of %s: %w", link.Attrs().Name, err)
	}
	var addrs []netip.Addr
	for _, a := range list {
		unproven := a.Flags&unix.IFA_F_TENTATIVE != 0 && a.Flags&unix.IFA_F_OPTIMISTIC == 0
		if unproven || a.Flags&unix.IFA_F_DADFAILED != 0 {
			continue
		}
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			addrs = append(addrs, ip.Unmap())
		}
	}
	return addrs, nil
}

// readVLANs picks the VLAN interfaces on the port with this index, and those on them, out of all
// interfaces, with their addresses, in the order in which they were made.
func readVLANs(handle *netlink.Handle, links []netlink.Link, port int) ([]VLAN, error) {
	list := vlansOn(Port{Index: port}, links)
	list = vlansOn(Port{Index: port, VLANs: list}, links)
	for i := range list {
		link := &netlink.GenericLink{
			LinkAttrs: netlink.LinkAttrs{Name: list[i].Name, Index: list[i].Index},
		}
		var err error
		if list[i].Addrs, err = readAddrs(handle, link); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// vlansOn picks the VLAN interfaces on a port, and on those of its VLANs that are known, without
// addresses.
func vlansOn(port Port, links []netlink.Link) (list []VLAN) {
	for _, link := range links {
		if v, ok := vlanOn(port, link); ok {
			list = append(list, v)
		}
	}
	sortVLANs(list)
	return list
}

// sameNamespace is the NetNsID of an interface that is on none of another network namespace: the
// kernel says nothing of one (IFLA_LINK_NETNSID) then. Otherwise the index of what it is on
// (IFLA_LINK) is one there, and may be that of another interface here (kernel net/core/rtnetlink.c
// rtnl_fill_link_netnsid).
const sameNamespace = -1

// vlanOn describes a VLAN interface on a port or on one of its VLANs, without addresses.
func vlanOn(port Port, link netlink.Link) (v VLAN, ok bool) {
	vlan, ok := link.(*netlink.Vlan)
	if !ok || vlan.NetNsID != sameNamespace {
		return v, false
	}
	outer, ok := port.vlanAt(vlan.ParentIndex)
	if !ok {
		return v, false
	}
	tpid := uint16(wire.TPIDCustomer)
	if vlan.VlanProtocol == netlink.VLAN_PROTOCOL_8021AD {
		tpid = wire.TPIDService
	}
	v = VLAN{Name: vlan.Name, Index: vlan.Index}
	copy(v.MAC[:], vlan.HardwareAddr)
	v.ID, ok = wire.NewVLAN(tpid, uint16(vlan.VlanId)).Behind(outer)
	return v, ok
}

// sortVLANs brings VLANs into the order in which they were made.
func sortVLANs(list []VLAN) {
	slices.SortFunc(list, func(a, b VLAN) int { return cmp.Compare(a.Index, b.Index) })
}
