package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"xroce/bpf"
	"xroce/engine"
	"xroce/xsk"
	"xroce/xsk/vethpair"
)

// A veth is a cable between two network namespaces. Each end has so many queues.
type veth struct {
	*vethpair.Pair
	queues int
}

// sendBuffer is the SO_SNDBUF of the socket in bytes, as engine.Open has it: the
// default holds some 80 large frames.
const sendBuffer = 8 << 20

var sides = [2]vethpair.Side{vethpair.A, vethpair.B}

// lossy makes a cable that loses frames of the one that there is.
func (v veth) lossy(w *cable, share float64, seed uint64) (*cable, *loss, error) {
	var links [2]*lossyLink
	bad := *w
	bad.open = func(host int, o engine.Options) (d *engine.Device, err error) {
		err = v.Do(sides[host], func() error {
			d, links[host], err = v.openLossy(host, o, share, seed+uint64(host))
			return err
		})
		return d, err
	}
	return &bad, &loss{counts: func() (sent, lost uint64) {
		for _, l := range links {
			sent += l.frames.Load()
			lost += l.lost.Load()
		}
		return sent, lost
	}}, nil
}

// openLossy does what engine.Open does, with a link that loses frames.
func (v veth) openLossy(
	host int, o engine.Options, share float64, seed uint64,
) (*engine.Device, *lossyLink, error) {
	h, err := v.host(host, o)
	if err != nil {
		return nil, nil, err
	}
	if o.Mode == xsk.ModeAuto {
		o.Mode = xsk.ModeCopy
	}
	sockets, err := xsk.OpenGroup(xsk.Config{
		Ifindex: h.port.Index, Mode: o.Mode, SndBuf: sendBuffer,
	}, upTo(v.queues))
	if err != nil {
		return nil, nil, errors.Join(err, h.Close())
	}
	if err := sockets.Sockets(h.program.Register); err != nil {
		return nil, nil, errors.Join(err, sockets.Close(), h.Close())
	}
	link := newLossyLink(sockets, share, seed)
	d, err := engine.OpenLink(link, h, o)
	return d, link, err
}

// upTo is the queues of an end.
func upTo(n int) (queues []int) {
	for q := range n {
		queues = append(queues, q)
	}
	return queues
}

// A vethHost is the engine.Host of one end: there is one neighbour, and its
// address is known.
type vethHost struct {
	port    engine.Port
	peer    netip.Addr
	peerMAC [6]byte
	program *bpf.Program
}

// host attaches the XDP program to one end.
func (v veth) host(host int, o engine.Options) (*vethHost, error) {
	own, other := &v.A, &v.B
	if host == 1 {
		own, other = other, own
	}
	h := &vethHost{
		port: engine.Port{
			Name: own.Name, Index: own.Ifindex, MAC: [6]byte(own.MAC), MTU: mtu, Up: true,
			Addrs: []netip.Addr{own.IPv4.Addr()},
		},
		peer: other.IPv4.Addr(), peerMAC: [6]byte(other.MAC),
	}
	key, err := bpf.AddrKey(own.IPv4.Addr())
	if err != nil {
		return nil, err
	}
	if h.program, err = bpf.Attach(own.Ifindex, bpf.Options{Mode: o.Attach}); err != nil {
		return nil, err
	}
	if err := h.program.Own(key); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Port implements engine.Host.
func (h *vethHost) Port() engine.Port { return h.port }

// Resolve implements engine.Host.
func (h *vethHost) Resolve(_ context.Context, _, dst netip.Addr) ([6]byte, error) {
	if dst.Unmap() != h.peer {
		return [6]byte{}, fmt.Errorf("%w: %s", engine.ErrNoNeighbour, dst)
	}
	return h.peerMAC, nil
}

// Close implements engine.Host.
func (h *vethHost) Close() error { return h.program.Close() }
