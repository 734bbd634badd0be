package host

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// This file keeps the port as notifications of links and addresses say. A namespace
// may have hundreds of interfaces that come and go, which are none of ours: what a
// message is about is in its first bytes, and what has changed is in the message.

// lookLink takes a notification about an interface (RTM_NEWLINK, RTM_DELLINK) and
// reports whether it is the port, or a VLAN on it.
func (w *netWatch) lookLink(kind uint16, data []byte) (ours bool) {
	if len(data) < unix.SizeofIfInfomsg {
		return false
	}
	info := nl.DeserializeIfInfomsg(data)
	// A bridge tells of its ports by messages of its own family: one that leaves it is
	// deleted there, and nowhere else (kernel net/bridge/br_netlink.c br_ifinfo_notify).
	if info.Family != unix.AF_UNSPEC {
		return false
	}
	index := int(info.Index)
	if index == w.index {
		if kind == unix.RTM_DELLINK {
			w.remove()
			return true
		}
		w.tell(running(info.Flags))
		return w.takePort(data)
	}
	place := slices.IndexFunc(w.now.Load().VLANs, func(v VLAN) bool { return v.Index == index })
	if kind == unix.RTM_DELLINK {
		return place >= 0 && w.dropVLAN(place)
	}
	if place < 0 {
		if _, on := w.now.Load().vlanAt(lowerLink(data[unix.SizeofIfInfomsg:])); !on {
			return false
		}
	}
	return w.takeVLAN(place, data)
}

// takePort takes over what a message says of the port itself.
func (w *netWatch) takePort(data []byte) bool {
	link, err := netlink.LinkDeserialize(nil, data)
	if err != nil {
		return false // nothing that a kernel sends
	}
	// Events of wireless extensions have the name alone (kernel net/wireless/wext-core.c
	// rtnetlink_ifinfo_prep).
	if link.Attrs().MTU == 0 {
		return false
	}
	port := *w.now.Load()
	describePort(&port, link.Attrs())
	w.now.Store(&port)
	return true
}

// takeVLAN takes over what a message says of the VLAN at a place, or of an interface
// on the port or on a VLAN of it that is new, where place is negative.
func (w *netWatch) takeVLAN(place int, data []byte) bool {
	link, err := netlink.LinkDeserialize(nil, data)
	if err != nil {
		return false // nothing that a kernel sends
	}
	v, ok := vlanOn(*w.now.Load(), link)
	switch {
	case !ok && place >= 0: // its place is another interface's by now
		return w.dropVLAN(place)
	case !ok:
		return false
	}
	list := w.vlans()
	if place >= 0 {
		v.Addrs = list[place].Addrs
		list[place] = v
		return w.setVLANs(list)
	}
	// Addresses that it has already were told before anybody knew whose they are.
	v.Addrs = w.addrsOf(v.Index, nil)
	list = append(list, v)
	sortVLANs(list)
	return w.setVLANs(list)
}

// dropVLAN takes the VLAN at a place for gone. If it has moved to another namespace, a VLAN on it
// stays here, is on none of ours any more, and nothing is said of that: a dump tells.
func (w *netWatch) dropVLAN(place int) bool {
	list := slices.Delete(w.vlans(), place, place+1)
	w.missed = w.missed || slices.ContainsFunc(list, VLAN.stacked)
	return w.setVLANs(list)
}

// vlans is a copy of the list of VLANs: that of a Port does not change.
func (w *netWatch) vlans() []VLAN { return slices.Clone(w.now.Load().VLANs) }

// setVLANs replaces the list of VLANs, and returns true: something changed.
func (w *netWatch) setVLANs(list []VLAN) bool {
	port := *w.now.Load()
	port.VLANs = list
	w.now.Store(&port)
	return true
}

// lookAddr takes a notification about an address (RTM_NEWADDR, RTM_DELADDR) and reports
// whether it is one of the port or of a VLAN of it. Those of a VLAN that is not known
// yet are read with it.
func (w *netWatch) lookAddr(data []byte) (ours bool) {
	if len(data) < unix.SizeofIfAddrmsg {
		return false
	}
	index := int(nl.DeserializeIfAddrmsg(data).Index)
	port := *w.now.Load()
	if index == port.Index {
		port.Addrs = w.addrsOf(index, port.Addrs)
		w.now.Store(&port)
		return true
	}
	place := slices.IndexFunc(port.VLANs, func(v VLAN) bool { return v.Index == index })
	if place < 0 {
		return false
	}
	list := w.vlans()
	list[place].Addrs = w.addrsOf(index, list[place].Addrs)
	return w.setVLANs(list)
}

// addrsOf reads the addresses of an interface. Where they cannot be read it returns
// those before, and everything is read again.
func (w *netWatch) addrsOf(index int, before []netip.Addr) []netip.Addr {
	link := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}
	addrs, err := w.addrs(w.handle, link)
	if err != nil {
		w.missed = true
		return before
	}
	return addrs
}

// lowerLink is the index of the interface that another is on (IFLA_LINK), 0 for none,
// out of the attributes of a message about it. It may be in another namespace: see vlanOn.
func lowerLink(attrs []byte) int {
	for len(attrs) >= unix.SizeofRtAttr {
		n := int(binary.NativeEndian.Uint16(attrs))
		if n < unix.SizeofRtAttr || n > len(attrs) {
			return 0
		}
		if binary.NativeEndian.Uint16(attrs[2:]) == unix.IFLA_LINK && n >= unix.SizeofRtAttr+4 {
			return int(binary.NativeEndian.Uint32(attrs[unix.SizeofRtAttr:]))
		}
		attrs = attrs[min((n+3)&^3, len(attrs)):]
	}
	return 0
}

// remove tells that the interface is gone, once.
func (w *netWatch) remove() {
	w.tell(false)
	if !w.gone {
		w.gone = true
		close(w.removed)
	}
}

// tell passes a state on if it is another.
func (w *netWatch) tell(up bool) {
	if up == w.up {
		return
	}
	w.up = up
	select {
	case w.states <- up:
	case <-w.done:
	}
}

// running reports whether an interface is up and has a carrier.
func running(flags uint32) bool {
	const both = unix.IFF_UP | unix.IFF_RUNNING
	return flags&both == both
}
