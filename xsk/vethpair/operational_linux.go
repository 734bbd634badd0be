package vethpair

import (
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// An interface that is set up is no link yet: the kernel notes its carrier later, in a work queue
// (net/core/link_watch.c), and drops what is sent before. On a busy host that is some
// milliseconds, or a second.
const (
	operationalLimit = 30 * time.Second
	operationalEvery = time.Millisecond
)

// awaitOperational waits until packets that are sent leave.
func awaitOperational(ns netns.NsHandle, names ...string) error {
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	end := time.Now().Add(operationalLimit)
	for _, name := range names {
		for {
			l, err := h.LinkByName(name)
			if err != nil {
				return err
			}
			state := l.Attrs().OperState
			if state == netlink.OperUp {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("%s is %s for %v, not up", name, state, operationalLimit)
			}
			time.Sleep(operationalEvery)
		}
	}
	return nil
}
