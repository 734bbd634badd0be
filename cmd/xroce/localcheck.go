package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
)

// This file finds mistakes of this end before the other end is met, which could only say
// that this one went away.

// checkGID tests that an index of the GID table, or peer.AutoGID, can be used.
func checkGID(dev *engine.Device, index int) error {
	if index == peer.AutoGID {
		return nil
	}
	if _, err := dev.QueryGID(index); err != nil {
		return fmt.Errorf("%s: %w: 'xroce devinfo -v -d %s' lists them", dev.Name(), err,
			dev.Name())
	}
	return nil
}

// checkMTU tests that packets of a path MTU fit the interface; 0 is that of the interface.
func checkMTU(dev *engine.Device, mtu wire.MTU) error {
	if active := dev.ActiveMTU(); mtu > active {
		return fmt.Errorf("%w: a path MTU of %d does not fit the MTU of %s, %d: use -m %d, or "+
			"raise it at both ends and in between with: ip link set %s mtu %d", roce.ErrInvalid,
			mtu.Bytes(), dev.Name(), dev.Port().MTU, active.Bytes(), dev.Name(),
			mtu.Bytes()+wire.MTUOverhead)
	}
	return nil
}

// sourceOf is the address from which packets to a host leave, by the routes of this
// machine. Nothing is sent, but a name is looked up.
func sourceOf(ctx context.Context, host string, port int) (netip.Addr, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "udp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return netip.Addr{}, err
	}
	defer conn.Close()
	addr, _ := netip.ParseAddrPort(conn.LocalAddr().String()) // of a UDP socket it is one
	return addr.Addr(), nil
}
