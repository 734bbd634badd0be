package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"xroce/engine"
	"xroce/xsk"
	"xroce/xsk/vethpair"
)

// namespaces makes a cable of two network namespaces joined by a veth pair.
func namespaces() (*cable, error) {
	// What a demonstration left that was killed.
	if _, err := vethpair.Sweep(); err != nil {
		return nil, err
	}
	p, err := vethpair.New(vethpair.Options{MTU: mtu})
	if err != nil {
		return nil, err
	}
	w := &cable{
		hostsAre: "two network namespaces joined by a veth pair",
		open: func(host int, o engine.Options) (d *engine.Device, err error) {
			if o.Mode == xsk.ModeAuto {
				o.Mode = xsk.ModeCopy // what every driver can
			}
			err = p.Do(sides[host], func() error {
				d, err = engine.Open(vethpair.IfName, o)
				return err
			})
			return d, err
		},
		dial:  func(ctx context.Context) (net.Conn, net.Conn, error) { return dial(ctx, p) },
		close: p.Close,
		remove: func() []string {
			return []string{"ip netns del " + p.A.Namespace, "ip netns del " + p.B.Namespace}
		},
	}
	w.lossy = func(share float64, seed uint64) (*cable, *loss, error) {
		return veth{p}.lossy(w, share, seed)
	}
	return w, nil
}

// dial makes a TCP connection from one namespace to the other, through the
// kernel's own network stack: the XDP program lets it pass.
func dial(ctx context.Context, p *vethpair.Pair) (from, to net.Conn, err error) {
	var l *net.TCPListener
	err = p.Do(vethpair.B, func() error {
		addr := netip.AddrPortFrom(p.B.IPv4.Addr(), 0)
		l, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("in %s: %w", p.B.Namespace, err)
	}
	defer l.Close()
	err = p.Do(vethpair.A, func() error {
		from, err = new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("in %s: %w", p.A.Namespace, err)
	}
	// The connection is established: it waits to be accepted.
	if to, err = l.Accept(); err != nil {
		return nil, nil, errors.Join(err, from.Close())
	}
	return from, to, nil
}
