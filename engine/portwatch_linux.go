package engine

import (
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A portWatch follows the state of an interface by the notifications of
// rtnetlink, in the network namespace that it was made in.
type portWatch struct {
	index   int
	socket  *nl.NetlinkSocket
	handle  *netlink.Handle // asks again when notifications were lost
	up      bool
	states  chan bool
	done    chan struct{}
	running sync.WaitGroup
	once    sync.Once
}

// watchPort begins to follow an interface.
func watchPort(index int) (*portWatch, error) {
	// Listen first and look then, so that nothing happens unseen in between.
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
	if err != nil {
		return nil, fmt.Errorf("engine: rtnetlink notifications: %w", err)
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("engine: rtnetlink: %w", err)
	}
	w := &portWatch{
		index: index, socket: socket, handle: handle, states: make(chan bool),
		done: make(chan struct{}),
	}
	if w.up, err = w.ask(); err != nil {
		socket.Close()
		handle.Close()
		return nil, err
	}
	w.running.Go(w.run)
	return w, nil
}

// close ends the watch and returns when it is over.
func (w *portWatch) close() {
	w.once.Do(func() {
		close(w.done)
		w.socket.Close()
		w.running.Wait()
		w.handle.Close()
	})
}

// run passes on each change of the state until close.
func (w *portWatch) run() {
	defer close(w.states)
	for {
		messages, from, err := w.socket.Receive()
		switch {
		case errors.Is(err, unix.ENOBUFS):
			// The kernel had more to say than the socket holds.
			if up, err := w.ask(); err == nil {
				w.tell(up)
			}
			continue
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return // closed; there is no other reason
		case from.Pid != nl.PidKernel:
			continue
		}
		for _, m := range messages {
			w.look(m.Header.Type, m.Data)
		}
	}
}

// look judges one notification.
func (w *portWatch) look(kind uint16, data []byte) {
	if len(data) < unix.SizeofIfInfomsg {
		return
	}
	info := nl.DeserializeIfInfomsg(data)
	if int(info.Index) != w.index {
		return
	}
	switch kind {
	case unix.RTM_NEWLINK:
		w.tell(running(info.Flags))
	case unix.RTM_DELLINK:
		w.tell(false)
	}
}

// tell passes a state on if it is another.
func (w *portWatch) tell(up bool) {
	if up == w.up {
		return
	}
	w.up = up
	select {
	case w.states <- up:
	case <-w.done:
	}
}

// ask reads the state.
func (w *portWatch) ask() (up bool, err error) {
	link, err := w.handle.LinkByIndex(w.index)
	if err != nil {
		return false, fmt.Errorf("engine: interface %d: %w", w.index, err)
	}
	return running(link.Attrs().RawFlags), nil
}

// running tells whether an interface is up and has a carrier.
func running(flags uint32) bool {
	const both = unix.IFF_UP | unix.IFF_RUNNING
	return flags&both == both
}
