package host

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// HasCarrier reports whether an interface of the thread's network namespace is up and the other
// end of its wire is there, now: a driver that resets its card says so at once
// (netif_carrier_off), and the kernel tells others later. It needs no privilege.
func HasCarrier(index int) (bool, error) {
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		return false, fmt.Errorf("host: interface %d: %w", index, err)
	}
	flags := link.Attrs().RawFlags
	return flags&unix.IFF_LOWER_UP != 0 && running(flags), nil
}
