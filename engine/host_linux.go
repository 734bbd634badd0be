package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernelHost asks the kernel of the network namespace that it was opened in.
type kernelHost struct {
	mu     sync.Mutex // of handle
	handle *netlink.Handle
	closed bool

	watch  *netWatch
	groups *groupSockets
}

var (
	_ Router      = (*kernelHost)(nil)
	_ PortWatcher = (*kernelHost)(nil)
	_ GroupJoiner = (*kernelHost)(nil)
)

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
func (h *kernelHost) open(iface string) error {
	link, err := h.handle.LinkByName(iface)
	if err != nil {
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			err = fmt.Errorf("there is no such interface; ip link lists them: %w", err)
		}
		return fmt.Errorf("engine: interface %s: %w", iface, err)
	}
	if len(link.Attrs().HardwareAddr) != len(Port{}.MAC) {
		return fmt.Errorf("engine: %s is no Ethernet interface (%s)", iface, link.Attrs().EncapType)
	}
	if h.watch, err = watchNet(link.Attrs().Index); err != nil {
		return err
	}
	h.groups, err = openGroupSockets(h.Port())
	return err
}

// Port implements Host.
func (h *kernelHost) Port() Port { return h.watch.port() }

// Close implements Host.
func (h *kernelHost) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		h.handle.Close()
	}
	if h.watch != nil {
		h.watch.close()
	}
	if h.groups != nil {
		return h.groups.close()
	}
	return nil
}

// ask uses the handle, which is not safe for concurrent use, while it is open.
func (h *kernelHost) ask(f func(*netlink.Handle) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errClosed
	}
	return f(h.handle)
}

// Join implements GroupJoiner.
func (h *kernelHost) Join(group netip.Addr) error { return h.groups.join(group) }

// Leave implements GroupJoiner.
func (h *kernelHost) Leave(group netip.Addr) error { return h.groups.leave(group) }

// PortStates implements PortWatcher.
func (h *kernelHost) PortStates() <-chan bool { return h.watch.states }

// Changes implements Router.
func (h *kernelHost) Changes() <-chan struct{} { return h.watch.changes }
