package vethpair

import (
	"fmt"
	"net/netip"
)

// Drop is drop.
var Drop = drop

// Found is nil when an interface is in the group of those who answer for an address.
func Found(name string, addr netip.Addr) error {
	group := solicitedNode(addr)
	ok, err := inGroup(name, group)
	if err == nil && !ok {
		err = fmt.Errorf("%s is not in group %v", name, group)
	}
	return err
}
