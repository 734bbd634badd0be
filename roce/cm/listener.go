package cm

import (
	"fmt"
	"net/netip"
	"slices"

	"xroce/roce/wire"
)

// A ListenerID names a listener of a machine. 0 names none.
type ListenerID uint32

// Listen says what a listener listens for.
type Listen struct {
	Service ServiceID
	// Mask are the bits of a service ID that count, 0 for all: with it a listener takes a
	// range, as with the service mask of the kernel's ib_cm. Service has no other bit.
	Mask ServiceID
	// Addr is the address that requests must be for: one of ours, 0.0.0.0 for
	// any IPv4 address, :: for any IPv6 address, the zero Addr for any.
	Addr netip.Addr
	// Datagram listens for SIDR requests instead of connection requests.
	Datagram  bool
	Transport Transport // that requests must ask for: of RC, UC or XRC
	// Backlog is how many requests may wait for the application at once, default
	// 128; a new one takes the place of the oldest one of the host that has the
	// most.
	Backlog int
}

// wholeMask is that of one service ID.
const wholeMask = ^ServiceID(0)

// overlaps reports whether a request could be for either (kernel
// drivers/infiniband/core/cm.c, cm_insert_listen).
func (l *Listen) overlaps(other *Listen) bool {
	return (l.Service^other.Service)&l.Mask&other.Mask == 0 &&
		l.Addr == other.Addr && l.Datagram == other.Datagram
}

type listener struct {
	Listen
	id      ListenerID
	waiting int // connection requests that wait for the application
}

// Listen adds a listener. A request goes to the one with its exact address, else
// to the one for its address family, else to the one for any. It returns ErrInUse
// when a service ID of it has a listener for this address.
func (m *Machine) Listen(l Listen) (ListenerID, error) {
	if l.Backlog < 0 || !l.Transport.offered() {
		return 0, fmt.Errorf("%w: backlog %d, transport %d", ErrInvalid, l.Backlog, l.Transport)
	}
	if l.Backlog == 0 {
		l.Backlog = defaultBacklog
	}
	if l.Mask == 0 {
		l.Mask = wholeMask
	}
	if l.Service&^l.Mask != 0 {
		return 0, fmt.Errorf("%w: service %s has bits beside the mask %s", ErrInvalid, l.Service,
			l.Mask)
	}
	l.Addr = l.Addr.Unmap().WithZone("")
	if m.inUse(&l) {
		return 0, fmt.Errorf("%w: %s on %s", ErrInUse, l.Service, l.Addr)
	}
	for m.lastListener++; m.lastListener == 0 || m.listeners[m.lastListener] != nil; {
		m.lastListener++
	}
	added := &listener{Listen: l, id: m.lastListener}
	m.listeners[added.id] = added
	m.services[l.Service] = append(m.services[l.Service], added)
	if l.Mask != wholeMask {
		m.masks[l.Mask]++
	}
	return added.id, nil
}

// inUse reports whether a listener could take a request that is for a new one.
func (m *Machine) inUse(l *Listen) bool {
	if l.Mask == wholeMask {
		same := m.listenerAt(l.Service, wholeMask, l.Datagram, l.Addr) != nil
		for mask := range m.masks {
			same = same || m.listenerAt(l.Service, mask, l.Datagram, l.Addr) != nil
		}
		return same
	}
	for _, other := range m.listeners {
		if l.overlaps(&other.Listen) {
			return true
		}
	}
	return false
}

// Unlisten removes a listener. Requests that it has told of stay; they can still
// be accepted.
func (m *Machine) Unlisten(id ListenerID) error {
	l := m.listeners[id]
	if l == nil {
		return fmt.Errorf("%w: listener %d", ErrUnknown, id)
	}
	delete(m.listeners, id)
	if m.masks[l.Mask]--; m.masks[l.Mask] <= 0 { // a whole one was not counted
		delete(m.masks, l.Mask)
	}
	rest := slices.DeleteFunc(m.services[l.Service], func(x *listener) bool { return x == l })
	if len(rest) == 0 {
		delete(m.services, l.Service)
	} else {
		m.services[l.Service] = rest
	}
	return nil
}

// listenerFor finds the listener of a request to one of our addresses.
func (m *Machine) listenerFor(s ServiceID, datagram bool, dst netip.Addr) *listener {
	family := netip.IPv6Unspecified()
	if dst.Is4() {
		family = netip.IPv4Unspecified()
	}
	for _, addr := range []netip.Addr{dst, family, {}} {
		if l := m.listenerAt(s, wholeMask, datagram, addr); l != nil {
			return l
		}
		for mask := range m.masks {
			// No two of them are for the same address, so it does not matter which is first.
			if l := m.listenerAt(s, mask, datagram, addr); l != nil {
				return l
			}
		}
	}
	return nil
}

// listenerAt finds the listener that has exactly a mask and an address.
func (m *Machine) listenerAt(s, mask ServiceID, datagram bool, addr netip.Addr) *listener {
	for _, l := range m.services[s&mask] {
		if l.Mask == mask && l.Addr == addr && l.Datagram == datagram {
			return l
		}
	}
	return nil
}

// splitIPHeader parses the IP CM header of a request to a service of rdma_cm, and returns
// the private data behind it. ok is false when its addresses are not those of the packet:
// our answer goes to the latter, so a peer must not claim to be another.
func splitIPHeader(s ServiceID, from *Path, private []byte) (h IPHeader, rest []byte, ok bool) {
	if !s.IP() {
		return h, private, true
	}
	h, err := ParseIPHeader(private)
	if err != nil {
		return h, nil, false
	}
	src := h.Src.Addr()
	ok = wire.GIDFromAddr(src) == from.Remote && wire.GIDFromAddr(h.Dst) == from.Local &&
		!src.IsMulticast() && !src.IsLoopback() && !src.IsUnspecified()
	return h, private[IPHeaderLen:], ok
}
