package host

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// groupSockets keep an interface in multicast groups, as any program that listens
// to one does: the kernel then opens the filter of the NIC, and tells routers and
// switches by IGMP and MLD. The sockets are bound to no port and receive nothing.
// They are of the network namespace that they were opened in.
type groupSockets struct {
	port Port

	mu     sync.Mutex
	v4, v6 int // descriptors, -1 for none
	// packet is of the kind that joins by MAC address, -1 for none: packetErr says why.
	packet    int
	packetErr error
}

func openGroupSockets(port Port) (*groupSockets, error) {
	g := &groupSockets{port: port, v4: -1, v6: -1}
	// It needs CAP_NET_RAW, which nothing else here does: who has it not cannot join MAC
	// addresses. Protocol 0 is nothing to receive.
	g.packet, g.packetErr = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	var err error
	if g.v4, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("host: socket for IPv4 groups: %w", err), g.close())
	}
	g.v6, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) { // a kernel without IPv6
		return nil, errors.Join(fmt.Errorf("host: socket for IPv6 groups: %w", err), g.close())
	}
	return g, nil
}

// join subscribes to a group. A socket can be in
// net.ipv4.igmp_max_memberships IPv4 groups (20 by default), and in as many IPv6
// groups as net.core.optmem_max bytes describe.
func (g *groupSockets) join(group netip.Addr) error {
	err := g.set(group, unix.IP_ADD_MEMBERSHIP, unix.IPV6_JOIN_GROUP)
	switch {
	case errors.Is(err, unix.ENOBUFS):
		err = fmt.Errorf("%w; raise it with: sysctl net.ipv4.igmp_max_memberships=1000", err)
	case errors.Is(err, unix.ENOMEM):
		err = fmt.Errorf("%w; raise it with: sysctl net.core.optmem_max=1048576", err)
	}
	if err != nil {
		return fmt.Errorf("host: %s cannot join %s: %w", g.port.Name, group, err)
	}
	return nil
}

// leave ends join.
func (g *groupSockets) leave(group netip.Addr) error {
	if err := g.set(group, unix.IP_DROP_MEMBERSHIP, unix.IPV6_LEAVE_GROUP); err != nil {
		return fmt.Errorf("host: %s cannot leave %s: %w", g.port.Name, group, err)
	}
	return nil
}

// set sets a socket option that names a group on the interface.
func (g *groupSockets) set(group netip.Addr, v4, v6 int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.v4 < 0:
		return errClosed
	case group.Is4():
		return unix.SetsockoptIPMreqn(g.v4, unix.IPPROTO_IP, v4, &unix.IPMreqn{
			Multiaddr: group.As4(), Ifindex: int32(g.port.Index),
		})
	case g.v6 < 0:
		return unix.EAFNOSUPPORT
	}
	return unix.SetsockoptIPv6Mreq(g.v6, unix.IPPROTO_IPV6, v6, &unix.IPv6Mreq{
		Multiaddr: group.As16(), Interface: uint32(g.port.Index),
	})
}

// joinMAC has frames to a group's MAC address pass the filter of the interface.
func (g *groupSockets) joinMAC(group [6]byte) error {
	if err := g.setMAC(group, unix.PACKET_ADD_MEMBERSHIP); err != nil {
		return fmt.Errorf("host: %s cannot join %x: %w", g.port.Name, group, err)
	}
	return nil
}

// leaveMAC ends joinMAC.
func (g *groupSockets) leaveMAC(group [6]byte) error {
	if err := g.setMAC(group, unix.PACKET_DROP_MEMBERSHIP); err != nil {
		return fmt.Errorf("host: %s cannot leave %x: %w", g.port.Name, group, err)
	}
	return nil
}

func (g *groupSockets) setMAC(group [6]byte, option int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.v4 < 0:
		return errClosed
	case errors.Is(g.packetErr, unix.EPERM):
		return fmt.Errorf("a packet socket needs CAP_NET_RAW: %w", g.packetErr)
	case g.packetErr != nil:
		return g.packetErr
	}
	mreq := unix.PacketMreq{
		Ifindex: int32(g.port.Index), Type: unix.PACKET_MR_MULTICAST, Alen: uint16(len(group)),
	}
	copy(mreq.Address[:], group[:])
	return unix.SetsockoptPacketMreq(g.packet, unix.SOL_PACKET, option, &mreq)
}

// close gives the descriptors back, and leaves all groups with them. It is
// idempotent.
func (g *groupSockets) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, fd := range []*int{&g.v4, &g.v6, &g.packet} {
		if *fd >= 0 {
			errs = append(errs, unix.Close(*fd))
			*fd = -1
		}
	}
	return errors.Join(errs...)
}
