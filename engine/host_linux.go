package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernelHost asks the kernel of the network namespace that it was opened in.
type kernelHost struct {
	mu     sync.Mutex // netlink.Handle is not safe for concurrent use
	handle *netlink.Handle
	port   Port
	watch  *portWatch
	groups *groupSockets
}

// openKernelHost reads an interface and its addresses.
func openKernelHost(iface string) (*kernelHost, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("engine: rtnetlink: %w", err)
	}
	h := &kernelHost{handle: handle}
	if err := h.open(iface); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// open opens the rest; Close closes what it opened, also when it fails.
func (h *kernelHost) open(iface string) (err error) {
	if h.port, err = readPort(h.handle, iface); err != nil {
		return err
	}
	if h.watch, err = watchPort(h.port.Index); err != nil {
		return err
	}
	h.groups, err = openGroupSockets(h.port)
	return err
}

// readPort describes one interface of the handle's namespace.
func readPort(handle *netlink.Handle, iface string) (Port, error) {
	link, err := handle.LinkByName(iface)
	if err != nil {
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			err = fmt.Errorf("there is no such interface; ip link lists them: %w", err)
		}
		return Port{}, fmt.Errorf("engine: interface %s: %w", iface, err)
	}
	attrs := link.Attrs()
	port := Port{
		Name: attrs.Name, Index: attrs.Index, MTU: attrs.MTU,
		Up: attrs.Flags&net.FlagUp != 0,
	}
	if len(attrs.HardwareAddr) != len(port.MAC) {
		return Port{}, fmt.Errorf("engine: %s is no Ethernet interface (%s)", iface, link.Type())
	}
	copy(port.MAC[:], attrs.HardwareAddr)
	addrs, err := handle.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return Port{}, fmt.Errorf("engine: addresses of %s: %w", iface, err)
	}
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			port.Addrs = append(port.Addrs, ip.Unmap())
		}
	}
	return port, nil
}

// Port implements Host.
func (h *kernelHost) Port() Port { return h.port }

// Close implements Host.
func (h *kernelHost) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handle.Close()
	if h.watch != nil {
		h.watch.close()
	}
	if h.groups != nil {
		return h.groups.close()
	}
	return nil
}

// Join implements GroupJoiner.
func (h *kernelHost) Join(group netip.Addr) error { return h.groups.join(group) }

// Leave implements GroupJoiner.
func (h *kernelHost) Leave(group netip.Addr) error { return h.groups.leave(group) }

// PortStates implements PortWatcher.
func (h *kernelHost) PortStates() <-chan bool { return h.watch.states }

// How the kernel is asked to resolve a neighbour: it sends three probes, one a
// second, before it gives up.
const (
	resolveTimeout = 3500 * time.Millisecond
	resolvePoll    = time.Millisecond
)

// Resolve implements Host with the kernel's routes and neighbour table, so that
// ARP, ND, static entries and routers work as for everybody else.
func (h *kernelHost) Resolve(ctx context.Context, src, dst netip.Addr) ([6]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	hop, err := h.nextHop(src, dst)
	if err != nil {
		return [6]byte{}, err
	}
	poll := time.NewTicker(resolvePoll)
	defer poll.Stop()
	for asked := false; ; {
		mac, err := h.neighbour(hop)
		if err == nil {
			return mac, nil
		}
		if !errors.Is(err, ErrNoNeighbour) {
			return [6]byte{}, err
		}
		if !asked {
			if err := h.ask(hop); err != nil {
				return [6]byte{}, err
			}
			asked = true
		}
		select {
		case <-ctx.Done():
			return [6]byte{}, fmt.Errorf("%w: %s on %s; is the peer up, and in the same "+
				"network? try: ping -I %s %s", ErrNoNeighbour, hop, h.port.Name,
				h.port.Name, dst)
		case <-poll.C:
		}
	}
}

// nextHop is the address to which a packet to dst goes first.
func (h *kernelHost) nextHop(src, dst netip.Addr) (netip.Addr, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	routes, err := h.handle.RouteGetWithOptions(dst.AsSlice(), &netlink.RouteGetOptions{
		Oif: h.port.Name, SrcAddr: src.AsSlice(),
	})
	if err != nil {
		return dst, fmt.Errorf("engine: no route from %s to %s by %s: %w",
			src, dst, h.port.Name, err)
	}
	for _, r := range routes {
		if r.LinkIndex != h.port.Index {
			return dst, fmt.Errorf("engine: the route to %s does not leave by %s",
				dst, h.port.Name)
		}
		if gw, ok := netip.AddrFromSlice(r.Gw); ok {
			return gw.Unmap(), nil
		}
	}
	return dst, nil
}

// neighbourKnown are the states in which an entry has a MAC address that may be
// used (kernel include/net/neighbour.h NUD_VALID).
const neighbourKnown = netlink.NUD_PERMANENT | netlink.NUD_NOARP | netlink.NUD_REACHABLE |
	netlink.NUD_PROBE | netlink.NUD_STALE | netlink.NUD_DELAY

// neighbour looks an address up in the kernel's table.
func (h *kernelHost) neighbour(ip netip.Addr) (mac [6]byte, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list, err := h.handle.NeighList(h.port.Index, family(ip))
	if err != nil {
		return mac, fmt.Errorf("engine: neighbours of %s: %w", h.port.Name, err)
	}
	for _, n := range list {
		addr, ok := netip.AddrFromSlice(n.IP)
		if ok && addr.Unmap() == ip && n.State&neighbourKnown != 0 &&
			len(n.HardwareAddr) == len(mac) {
			copy(mac[:], n.HardwareAddr)
			return mac, nil
		}
	}
	return mac, ErrNoNeighbour
}

// ask makes the kernel resolve a neighbour as if it had a packet for it
// (kernel net/core/neighbour.c neigh_add, NTF_USE).
func (h *kernelHost) ask(ip netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.handle.NeighSet(&netlink.Neigh{
		LinkIndex: h.port.Index, Family: family(ip), IP: ip.AsSlice(),
		State: netlink.NUD_NONE, Flags: netlink.NTF_USE,
	})
	if err != nil {
		return fmt.Errorf("engine: asking for neighbour %s: %w", ip, err)
	}
	return nil
}

func family(ip netip.Addr) int {
	if ip.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}
