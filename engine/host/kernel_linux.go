package host

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A Kernel is the host of an interface of this machine: it asks the kernel, in the
// network namespace that it was opened in. Its methods are safe for concurrent use.
type Kernel struct {
	mu     sync.Mutex // of handle
	handle *netlink.Handle
	closed bool

	ns     namespace
	watch  *netWatch
	groups *groupSockets
}

var (
	_ Router         = (*Kernel)(nil)
	_ PortWatcher    = (*Kernel)(nil)
	_ RemovalWatcher = (*Kernel)(nil)
	_ Namespaced     = (*Kernel)(nil)
	_ GroupJoiner    = (*Kernel)(nil)
	_ MACJoiner      = (*Kernel)(nil)
)

// Open finds an interface of the thread's network namespace by its name and begins to
// follow it. It needs no privilege; Lookup and Resolve need CAP_NET_ADMIN to have a
// neighbour resolved that the kernel does not know. What it returns may be used in any
// namespace, and the caller closes it. The error is fs.ErrNotExist, to errors.Is, when there is
// no such interface.
func Open(iface string) (*Kernel, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("host: rtnetlink: %w", err)
	}
	h := &Kernel{handle: handle, ns: namespace{-1}}
	if err := h.open(iface); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// open opens the rest; Close closes what it opened, also when it fails.
func (h *Kernel) open(iface string) error {
	var err error
	if h.ns, err = openNamespace(); err != nil {
		return err
	}
	link, err := h.handle.LinkByName(iface)
	if err != nil {
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			err = noInterfaceError{err}
		}
		return fmt.Errorf("host: interface %s: %w", iface, err)
	}
	if len(link.Attrs().HardwareAddr) != len(Port{}.MAC) {
		return fmt.Errorf("host: %s is no Ethernet interface (%s)", iface, link.Attrs().EncapType)
	}
	if h.watch, err = watchNet(link.Attrs().Index); err != nil {
		return err
	}
	h.groups, err = openGroupSockets(h.Port())
	return err
}

// A noInterfaceError says that there is no interface of a name. To errors.Is it is
// fs.ErrNotExist.
type noInterfaceError struct{ cause error }

// Error implements error.
func (e noInterfaceError) Error() string {
	return "there is no such interface; ip link lists them: " + e.cause.Error()
}

// Is reports whether another error says that something is missing.
func (noInterfaceError) Is(target error) bool { return target == fs.ErrNotExist }

// Unwrap returns what the kernel said.
func (e noInterfaceError) Unwrap() error { return e.cause }

// Port implements Host. It answers from a copy, without asking the kernel.
func (h *Kernel) Port() Port { return h.watch.port() }

// Close implements Host: it leaves all groups, and closes what PortStates and Changes
// return. It is idempotent.
func (h *Kernel) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	if !h.closed {
		h.closed = true
		h.handle.Close()
		err = h.ns.close()
	}
	if h.watch != nil {
		h.watch.close()
	}
	if h.groups != nil {
		err = errors.Join(err, h.groups.close())
	}
	return err
}

// Do implements Namespaced.
func (h *Kernel) Do(f func() error) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return errClosed
	}
	ns, err := h.ns.clone()
	h.mu.Unlock()
	if err != nil {
		return err
	}
	return errors.Join(ns.do(f), ns.close())
}

// ask uses the handle, which is not safe for concurrent use, while it is open.
func (h *Kernel) ask(f func(*netlink.Handle) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errClosed
	}
	return f(h.handle)
}

// Join implements GroupJoiner.
func (h *Kernel) Join(group netip.Addr) error { return h.groups.join(group) }

// Leave implements GroupJoiner.
func (h *Kernel) Leave(group netip.Addr) error { return h.groups.leave(group) }

// JoinMAC implements MACJoiner.
func (h *Kernel) JoinMAC(group [6]byte) error { return h.groups.joinMAC(group) }

// LeaveMAC implements MACJoiner.
func (h *Kernel) LeaveMAC(group [6]byte) error { return h.groups.leaveMAC(group) }

// PortStates implements PortWatcher.
func (h *Kernel) PortStates() <-chan bool { return h.watch.states }

// Removed implements RemovalWatcher.
func (h *Kernel) Removed() <-chan struct{} { return h.watch.removed }

// Changes implements Router.
func (h *Kernel) Changes() <-chan struct{} { return h.watch.changes }
