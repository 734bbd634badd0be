package host

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A netWatch follows an interface, its VLANs and their addresses, the neighbours,
// and that routes change, by the notifications of rtnetlink, in the network
// namespace that it was made in.
type netWatch struct {
	index      int
	socket     *nl.NetlinkSocket
	handle     *netlink.Handle // of run, once that has begun
	now        atomic.Pointer[Port]
	neighbours neighbourTable
	up         bool          // what states told last
	missed     bool          // something could not be read, and is read again
	overrun    time.Time     // since when notifications are lost, zero when they are not
	states     chan bool     // see PortWatcher
	changes    chan struct{} // see Router; has room for one
	removed    chan struct{} // see RemovalWatcher
	gone       bool          // removed is closed
	done       chan struct{}
	running    sync.WaitGroup
	once       sync.Once
	// read is readPort, which asks the kernel for all interfaces: at the beginning, and
	// when notifications were lost.
	read func(handle *netlink.Handle, index int) (Port, error)
	// addrs is readAddrs.
	addrs func(handle *netlink.Handle, link netlink.Link) ([]netip.Addr, error)
}

// lookAgain is after how long what could not be read is read again, when there is no notification
// before.
const lookAgain = 100 * time.Millisecond

// netGroups are what the watch hears of.
var netGroups = []uint{
	unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH,
	unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
	unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
	unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_NEXTHOP,
}

// watchNet begins to follow an interface.
func watchNet(index int) (*netWatch, error) {
	w, err := newNetWatch(index)
	if err == nil {
		w.running.Go(w.run)
	}
	return w, err
}

// newNetWatch reads how everything is, and hears what changes, for run.
func newNetWatch(index int) (*netWatch, error) {
	// Listen first and look then, so that nothing happens unseen in between.
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE, netGroups...)
	if err != nil {
		return nil, fmt.Errorf("host: rtnetlink notifications: %w", err)
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("host: rtnetlink: %w", err)
	}
	w := &netWatch{
		index: index, socket: socket, handle: handle, states: make(chan bool),
		changes: make(chan struct{}, 1), removed: make(chan struct{}),
		done: make(chan struct{}), read: readPort, addrs: readAddrs,
	}
	if err := w.begin(); err != nil {
		socket.Close()
		handle.Close()
		return nil, err
	}
	return w, nil
}

// begin reads how everything is.
func (w *netWatch) begin() (err error) {
	if err := w.readPort(); err != nil {
		return err
	}
	if w.up, err = w.askUp(); err != nil {
		return err
	}
	return w.neighbours.load(w.handle)
}

// port is the interface as it is.
func (w *netWatch) port() Port { return *w.now.Load() }

// close ends the watch and returns when it is over.
func (w *netWatch) close() {
	w.once.Do(func() {
		close(w.done)
		w.socket.Close()
		w.running.Wait()
		w.handle.Close()
	})
}

// run passes on what changes until close.
func (w *netWatch) run() {
	defer close(w.states)
	defer close(w.changes)
	for {
		// Not for long while something is to be read again. No socket refuses that.
		limit := unix.Timeval{}
		if w.missed || !w.overrun.IsZero() {
			limit = unix.NsecToTimeval(int64(lookAgain))
		}
		_ = w.socket.SetReceiveTimeout(&limit)
		messages, from, err := w.socket.Receive()
		switch {
		case errors.Is(err, unix.ENOBUFS):
			// The kernel had more to say than the socket holds.
			if w.overrun.IsZero() {
				w.overrun = time.Now()
			}
			w.catchUp()
			continue
		case errors.Is(err, unix.EAGAIN) && !w.overrun.IsZero():
			w.catchUp()
			continue
		case errors.Is(err, unix.EAGAIN) && w.missed:
			w.lookAnew()
			continue
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return // closed; there is no other reason
		case from.Pid != nl.PidKernel:
			continue
		}
		changed := false
		for _, m := range messages {
			changed = w.look(m.Header.Type, m.Data) || changed
		}
		switch {
		case !w.overrun.IsZero():
			w.catchUp()
		case w.missed:
			w.lookAnew()
		case changed:
			w.changed()
		}
	}
}

// catchUp reads everything after notifications were lost, once the socket is empty: until then the
// kernel loses further ones, and does not say so again (net/netlink/af_netlink.c,
// netlink_overrun). Where it does not become empty, everything is read now and then.
func (w *netWatch) catchUp() {
	_, _, err := unix.Recvfrom(w.socket.GetFd(), nil, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	switch now := time.Now(); {
	case errors.Is(err, unix.EAGAIN):
		w.overrun = time.Time{}
	case now.Sub(w.overrun) < lookAgain:
		return
	default:
		w.overrun = now
	}
	w.lookAnew()
}

// look takes a notification and reports whether it is about something of ours.
func (w *netWatch) look(kind uint16, data []byte) (changed bool) {
	switch kind {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		return w.lookLink(kind, data)
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		return w.lookAddr(data)
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		return w.neighbours.tell(kind, data)
	}
	return true // routes, rules and next hops
}

// lookAnew reads everything. What cannot be read stays as it was until the next notification, or
// until it is time to look again.
func (w *netWatch) lookAnew() {
	w.missed = w.neighbours.load(w.handle) != nil
	switch err := w.readPort(); {
	case errors.As(err, &netlink.LinkNotFoundError{}):
		w.remove()
	case err != nil:
		w.missed = true
	}
	if up, err := w.askUp(); err == nil {
		w.tell(up)
	}
	w.changed()
}

// readPort reads the port.
func (w *netWatch) readPort() error {
	port, err := w.read(w.handle, w.index)
	if err != nil {
		return err
	}
	w.now.Store(&port)
	return nil
}

// changed says so, if it is not said already.
func (w *netWatch) changed() {
	select {
	case w.changes <- struct{}{}:
	default:
	}
}

// askUp reads the state.
func (w *netWatch) askUp() (up bool, err error) {
	link, err := w.handle.LinkByIndex(w.index)
	if err != nil {
		return false, fmt.Errorf("host: interface %d: %w", w.index, err)
	}
	return running(link.Attrs().RawFlags), nil
}
