package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/roce/wire"
)

// How the kernel is asked to resolve a neighbour: it sends three probes, one a
// second, before it gives up.
const (
	resolveTimeout = 3500 * time.Millisecond
	resolvePoll    = time.Millisecond
)

// Resolve implements Host with the kernel's routes and neighbour table, so that
// ARP, ND, static entries and routers work as for everybody else.
func (h *Kernel) Resolve(ctx context.Context, src, dst netip.Addr) ([6]byte, error) {
	hop, err := h.ResolveOn(ctx, 0, src, dst)
	return hop.MAC, err
}

// ResolveOn implements Router.
func (h *Kernel) ResolveOn(ctx context.Context, vlan wire.VLAN, src, dst netip.Addr) (
	Hop, error,
) {
	limited, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	poll := time.NewTicker(resolvePoll)
	defer poll.Stop()
	via, gateway, err := h.nextHop(vlan, src, dst)
	if err != nil {
		return Hop{}, err
	}
	for asked := false; ; {
		n, ok := h.watch.neighbours.get(via)
		if !asked && (!ok || n.stale) {
			// What is known is the answer, also to who has no privilege to ask.
			if err := h.probe(via); err != nil && !ok {
				return Hop{}, err
			}
			asked = true
		}
		if ok {
			return Hop{MAC: n.mac, Gateway: gateway}, nil
		}
		select {
		case <-limited.Done():
			return h.lastResort(ctx, via, gateway, dst)
		case <-poll.C:
		}
	}
}

// lastResort is the answer of ResolveOn when its time is over: that of the table, unless nobody
// waits for it any more.
func (h *Kernel) lastResort(
	ctx context.Context, via neighbourKey, gateway, dst netip.Addr,
) (Hop, error) {
	none := h.noNeighbour(via, dst)
	over := ctx.Err() // nil when it is resolveTimeout that is over
	if over != nil {
		none = fmt.Errorf("%w: %w", over, none)
	}
	if errors.Is(over, context.Canceled) {
		return Hop{}, none
	}
	n, err := h.inTable(via)
	switch {
	case err != nil:
		return Hop{}, errors.Join(none, err)
	case n == nil:
		return Hop{}, none
	}
	return Hop{MAC: n.mac, Gateway: gateway}, nil
}

// inTable looks a neighbour up in the own table of the kernel, nil for none: who was not scheduled
// for as long as to resolve may take was told nothing either, and the neighbour may have answered.
func (h *Kernel) inTable(via neighbourKey) (found *neighbour, err error) {
	err = h.ask(func(handle *netlink.Handle) error {
		entries, err := readNeighbours(handle, via.ifindex, family(via.addr))
		if n, ok := entries[via]; ok {
			found = &n
		}
		return err
	})
	return found, err
}

// noNeighbour is the error of a next hop that does not answer.
func (h *Kernel) noNeighbour(via neighbourKey, dst netip.Addr) error {
	name := h.nameOf(via.ifindex)
	return fmt.Errorf("%w: %s on %s; is the peer up, and in the same network? try: "+
		"ping -I %s %s", ErrNoNeighbour, via.addr, name, name, dst)
}

// Lookup implements Router.
func (h *Kernel) Lookup(vlan wire.VLAN, src, dst netip.Addr) (Hop, error) {
	via, gateway, err := h.nextHop(vlan, src, dst)
	if err != nil {
		return Hop{}, err
	}
	n, ok := h.watch.neighbours.get(via)
	if !ok || n.stale {
		// What is known is the answer here, too.
		if err := h.probe(via); err != nil && !ok {
			return Hop{}, err
		}
	}
	if !ok {
		return Hop{}, h.noNeighbour(via, dst)
	}
	return Hop{MAC: n.mac, Gateway: gateway}, nil
}

// Known implements Router.
func (h *Kernel) Known(vlan wire.VLAN, src, dst netip.Addr) (Hop, error) {
	via, gateway, err := h.nextHop(vlan, src, dst)
	if err != nil {
		return Hop{}, err
	}
	n, ok := h.watch.neighbours.get(via)
	if !ok {
		return Hop{}, fmt.Errorf("%w: %s", ErrNoNeighbour, via.addr)
	}
	return Hop{MAC: n.mac, Gateway: gateway}, nil
}

// HasNeighbour implements Router.
func (h *Kernel) HasNeighbour(vlan wire.VLAN, addr netip.Addr) bool {
	index, err := h.ifindexOf(vlan)
	if err != nil {
		return false
	}
	_, ok := h.watch.neighbours.get(neighbourKey{index, addr})
	return ok
}

// nextHop is the neighbour to which a packet goes first; gateway is its address
// when it is not the destination.
func (h *Kernel) nextHop(vlan wire.VLAN, src, dst netip.Addr) (
	via neighbourKey, gateway netip.Addr, err error,
) {
	index, err := h.ifindexOf(vlan)
	if err != nil {
		return via, gateway, err
	}
	via = neighbourKey{index, dst}
	if dst.IsLinkLocalUnicast() && dst.Is6() {
		return via, gateway, nil // never routed, and on every interface
	}
	var routes []netlink.Route
	err = h.ask(func(handle *netlink.Handle) (err error) {
		routes, err = handle.RouteGetWithOptions(dst.AsSlice(), &netlink.RouteGetOptions{
			OifIndex: index, SrcAddr: src.AsSlice(),
		})
		return err
	})
	if err != nil {
		return via, gateway, fmt.Errorf("%w: from %s to %s by %s: %w", ErrNoRoute,
			src, dst, h.nameOf(index), err)
	}
	for _, r := range routes {
		if r.LinkIndex != index {
			return via, gateway, fmt.Errorf("%w: that to %s does not leave by %s", ErrNoRoute,
				dst, h.nameOf(index))
		}
		if r.Table == unix.RT_TABLE_UNSPEC {
			// Asked for an interface, the kernel takes an IPv4 address that no route
			// leads to for one on its link (net/ipv4/route.c,
			// ip_route_output_key_hash_rcu), and it would be asked for there by ARP.
			return via, gateway, fmt.Errorf("%w: from %s to %s by %s", ErrNoRoute, src, dst,
				h.nameOf(index))
		}
		if gw, ok := gatewayOf(r); ok && gw != dst {
			via.addr, gateway = gw, gw
		}
	}
	return via, gateway, nil
}

// gatewayOf is the router of a route, which may be of the other family (RTA_VIA).
func gatewayOf(r netlink.Route) (netip.Addr, bool) {
	ip := r.Gw
	if via, ok := r.Via.(*netlink.Via); ok {
		ip = via.Addr
	}
	gw, ok := netip.AddrFromSlice(ip)
	return gw.Unmap(), ok
}

// Source implements Router.
func (h *Kernel) Source(dst netip.Addr) (vlan wire.VLAN, src netip.Addr, err error) {
	var routes []netlink.Route
	err = h.ask(func(handle *netlink.Handle) (err error) {
		routes, err = handle.RouteGet(dst.AsSlice())
		return err
	})
	if err != nil {
		return 0, src, fmt.Errorf("host: no route to %s: %w", dst, err)
	}
	for _, r := range routes {
		src, ok := netip.AddrFromSlice(r.Src)
		vlan, known := h.Port().vlanAt(r.LinkIndex)
		if ok && known {
			return vlan, src.Unmap(), nil
		}
	}
	return 0, src, fmt.Errorf("host: the route to %s does not leave by %s", dst,
		h.Port().Name)
}

// ifindexOf is the interface of a VLAN.
func (h *Kernel) ifindexOf(vlan wire.VLAN) (int, error) {
	port := h.Port()
	if vlan == 0 {
		return port.Index, nil
	}
	for _, v := range port.VLANs {
		if v.ID == vlan {
			return v.Index, nil
		}
	}
	return 0, fmt.Errorf("host: %s has no VLAN %s any more", port.Name, vlan)
}

// nameOf is the name of the port or of a VLAN on it.
func (h *Kernel) nameOf(index int) string {
	port := h.Port()
	for _, v := range port.VLANs {
		if v.Index == index {
			return v.Name
		}
	}
	return port.Name
}

// probe makes the kernel resolve a neighbour, or find out whether it is still
// there, as if it had a packet for it (kernel net/core/neighbour.c v6.18 neigh_add,
// NTF_USE).
func (h *Kernel) probe(via neighbourKey) error {
	err := h.ask(func(handle *netlink.Handle) error {
		return handle.NeighSet(&netlink.Neigh{
			LinkIndex: via.ifindex, Family: family(via.addr), IP: via.addr.AsSlice(),
			State: netlink.NUD_NONE, Flags: netlink.NTF_USE,
		})
	})
	if err != nil && !errors.Is(err, errClosed) {
		err = fmt.Errorf("host: asking for neighbour %s: %w", via.addr, err)
	}
	return err
}

func family(ip netip.Addr) int {
	if ip.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}
