package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/host"
	"xroce/engine"
)

// A tcpLink says how the two ends of a command find each other.
type tcpLink struct {
	iface string // interface, "" to find the one that fits
	host  string // server to connect to, "" to be the server
	port  int

	// check, if not nil, finds mistakes of this end that only the device shows.
	check func(*engine.Device) error

	waiting func(net.Addr) // is told that a server waits for its client, may be nil
}

// keepAlive notices a peer that vanished without a word within half a minute. A host that
// does RDMA in software may be too busy to answer for several seconds.
var keepAlive = net.KeepAliveConfig{
	Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 5,
}

// dialTime bounds how long a server may take to accept.
const dialTime = 10 * time.Second

// meet opens the device and makes the TCP connection, in this order: what is wrong with
// this end is told before the other one is met.
func (a *app) meet(
	ctx context.Context, l tcpLink, o engine.Options,
) (conn net.Conn, dev *engine.Device, err error) {
	if l.host == "" {
		return a.meetClient(ctx, l, o)
	}
	if err := checkPort(l.port); err != nil {
		return nil, nil, err
	}
	if dev, err = a.openFor(ctx, l, o); err != nil {
		return nil, nil, err
	}
	dialer := net.Dialer{Timeout: dialTime, KeepAliveConfig: keepAlive}
	conn, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(l.host, strconv.Itoa(l.port)))
	if err != nil {
		return nil, nil, errors.Join(explainDial(err, l.host), dev.Close())
	}
	return conn, dev, nil
}

// openFor opens the device that was asked for, or that from which a server is reached, and
// checks what there is to check.
func (a *app) openFor(
	ctx context.Context, l tcpLink, o engine.Options,
) (dev *engine.Device, err error) {
	var from netip.Addr
	if l.iface == "" && l.host != "" {
		if from, err = sourceOf(ctx, l.host, l.port); err != nil {
			return nil, err
		}
	}
	iface, err := a.chooseInterface(l.iface, from)
	if err != nil {
		return nil, err
	}
	if dev, err = a.openDevice(iface, o); err != nil || l.check == nil {
		return dev, err
	}
	if err := l.check(dev); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return dev, nil
}

// meetClient is meet for a server.
func (a *app) meetClient(
	ctx context.Context, l tcpLink, o engine.Options,
) (conn net.Conn, dev *engine.Device, err error) {
	listener, err := a.listen(ctx, l.port)
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	if dev, err = a.openFor(ctx, l, o); err != nil {
		return nil, nil, err
	}
	if l.waiting != nil {
		l.waiting(listener.Addr())
	}
	a.tellWaiting(listener.Addr())
	if conn, err = a.letIn(ctx, listener); err != nil {
		dev.Close()
		return nil, nil, errors.Join(ctx.Err(), err)
	}
	a.met()
	return conn, dev, nil
}

// listen makes the listener of a server, at all addresses.
func (a *app) listen(ctx context.Context, port int) (net.Listener, error) {
	return a.listenAt(ctx, "", port)
}

// listenAt makes the listener of a server at an address.
func (a *app) listenAt(ctx context.Context, address string, port int) (net.Listener, error) {
	if err := checkPort(port); err != nil {
		return nil, err
	}
	config := net.ListenConfig{KeepAliveConfig: keepAlive}
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if errors.Is(err, unix.EADDRINUSE) {
		err = fmt.Errorf("%w: another server has the port; choose another with -p", err)
	}
	if err != nil {
		return nil, err
	}
	a.logger.Info("listening", "address", listener.Addr().String())
	if a.listening != nil {
		a.listening(listener.Addr())
	}
	return a.steady(listener), nil
}

// checkPort refuses what is no TCP port.
func checkPort(port int) error {
	if port < 0 || port > 65535 {
		return usagef("TCP port %d is not in 0..65535", port)
	}
	return nil
}

// chooseInterface takes the interface that was asked for, that which has an address, if
// one is given, or the only one there is.
func (a *app) chooseInterface(name string, from netip.Addr) (string, error) {
	if name != "" {
		return name, nil
	}
	list, err := a.machine.Interfaces()
	if err != nil {
		return "", err
	}
	if from.IsValid() {
		if i := host.WithAddr(list, from); i != nil && i.Ethernet {
			return i.Name, nil
		}
	}
	var names []string
	for _, i := range host.Devices(list) {
		if i.Up {
			names = append(names, i.Name)
		}
	}
	switch len(names) {
	case 0:
		return "", fmt.Errorf("no Ethernet interface is up: ip link set IFACE up")
	case 1:
		return names[0], nil
	}
	return "", usagef("which interface? choose one with -d: %s", strings.Join(names, ", "))
}
