package vethpair

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
)

// What the kernel does later, in a work queue, it does within milliseconds, or on a busy host
// within seconds.
const (
	operationalLimit = 2 * time.Minute
	operationalEvery = time.Millisecond
)

// AwaitOperational waits until packets leave that interfaces of the thread's namespace send. An
// interface that is set up is no link yet: the kernel notes its carrier later
// (net/core/link_watch.c), and drops what is sent before. The error names one that is not up after
// two minutes.
func AwaitOperational(names ...string) error {
	for _, name := range names {
		state := netlink.LinkOperState(netlink.OperUnknown)
		err := await(func() (bool, error) {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return false, err
			}
			state = l.Attrs().OperState
			return state == netlink.OperUp, nil
		})
		if errors.Is(err, errLate) {
			err = fmt.Errorf("%s is %s for %v, not up", name, state, operationalLimit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitSolicited waits until neighbours get an answer who ask for an IPv6 address of an interface
// of the thread's namespace: the kernel joins the group of those later (RFC 4291, 2.7.1;
// addrconf_dad_work in net/ipv6/addrconf.c), also when it is not to look for duplicates. Who has
// asked three times by then, a second each, is told that nobody has the address.
func awaitSolicited(name string, addr netip.Addr) error {
	err := await(func() (bool, error) { return inGroup(name, solicitedNode(addr)) })
	if errors.Is(err, errLate) {
		return fmt.Errorf("nobody is answered who asks for %v on %s for %v", addr, name,
			operationalLimit)
	}
	return err
}

// solicitedNode is the group of those who answer for an IPv6 address.
func solicitedNode(addr netip.Addr) netip.Addr {
	group, a := netip.MustParseAddr("ff02::1:ff00:0").As16(), addr.As16()
	copy(group[13:], a[13:])
	return netip.AddrFrom16(group)
}

// inGroup reports whether an interface of the thread's namespace is in an IPv6 multicast group. On
// a kernel without IPv6 it is, so that nobody waits for what never comes.
func inGroup(name string, group netip.Addr) (bool, error) {
	f, err := os.Open("/proc/thread-self/net/igmp6")
	if os.IsNotExist(err) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	defer f.Close()
	want := fmt.Sprintf("%x", group.As16())
	lines := bufio.NewScanner(f)
	for lines.Scan() { // interface index, name, group, ...
		if w := strings.Fields(lines.Text()); len(w) > 2 && w[1] == name && w[2] == want {
			return true, nil
		}
	}
	return false, lines.Err()
}

// errLate is the error of await, as it is.
var errLate = fmt.Errorf("not within %v", operationalLimit)

// await asks again and again until something is so.
func await(is func() (bool, error)) error {
	for end := time.Now().Add(operationalLimit); ; time.Sleep(operationalEvery) {
		if ok, err := is(); ok || err != nil {
			return err
		}
		if time.Now().After(end) {
			return errLate
		}
	}
}
