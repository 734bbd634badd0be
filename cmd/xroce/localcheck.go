package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
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
		return fmt.Errorf("GID index %d of %s is empty: 'xroce devinfo -v -d %s' lists them",
			index, dev.Name(), dev.Name())
	}
	return nil
}

// checkMTU tests that packets of a path MTU fit the interface; 0 is that of the interface.
func checkMTU(dev *engine.Device, mtu wire.MTU) error {
	if active := dev.ActiveMTU(); mtu > active {
		return fmt.Errorf("a path MTU of %d does not fit the MTU of %s, %d: use -m %d, or "+
			"raise it at both ends and in between with: ip link set %s mtu %d",
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
		var op *net.OpError
		if errors.As(err, &op) { // "dial udp" is not what the user asked for
			err = op.Err
		}
		return netip.Addr{}, fmt.Errorf("which interface leads to %s is not known; -d chooses "+
			"one: %w", host, err)
	}
	defer conn.Close()
	addr, _ := netip.ParseAddrPort(conn.LocalAddr().String()) // of a UDP socket it is one
	return addr.Addr(), nil
}

// explainDial adds to the error of a TCP connection what the cause may be.
func explainDial(err error, host string) error {
	var late net.Error
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%w: nobody listens there; start the server first", err)
	case errors.Is(err, unix.ENETUNREACH):
		return fmt.Errorf("%w: no route leads there; is the interface up? 'ip route get %s' tells",
			err, host)
	case errors.Is(err, unix.EHOSTUNREACH):
		return fmt.Errorf("%w: no host has this address, or it is down", err)
	case errors.As(err, &late) && late.Timeout():
		return fmt.Errorf("%w: nobody answers; is the address right, and does a firewall let TCP "+
			"through?", err)
	}
	return err
}
