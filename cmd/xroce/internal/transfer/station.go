package transfer

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/roce"
	rmsg "xroce/roce/msg"
)

// A Station is a device with what files are sent over. It is closed before the device.
type Station struct {
	Endpoint *msg.Endpoint

	dev     *engine.Device
	manager *cm.Manager
}

// machine is how files are sent. A stranger costs a server its slots and receives, so there
// are few: chunks announce themselves, and small files find large slots as soon as one needs them.
var machine = rmsg.Config{
	Slots: 16, Rendezvous: 2 * Slots, Registered: 64 << 20, Keepalive: roce.Time(5 * time.Second),
	Unexpected: 2 * maxMessage, // what comes before it is asked for may wait in its slots
}

// OpenStation makes a station of a device, with extensions of the transport that it offers.
func OpenStation(
	dev *engine.Device, extensions roce.Extensions, o cm.Options,
) (*Station, error) {
	manager, err := cm.Open(dev, o)
	if err != nil {
		return nil, err
	}
	endpoint, err := msg.Open(dev, manager, msg.Options{Machine: machine, Extensions: extensions})
	if err != nil {
		return nil, errors.Join(err, manager.Close())
	}
	return &Station{endpoint, dev, manager}, nil
}

// Close ends all connections.
func (s *Station) Close() error {
	// The endpoint waits until its peers have answered, the manager for not so long.
	return errors.Join(s.manager.Close(), s.Endpoint.Close())
}

// Listen waits for connections at several addresses.
func (s *Station) Listen(at []netip.AddrPort) (all []*msg.RequestListener, err error) {
	for _, addr := range at {
		l, err := s.Endpoint.ListenRequests(addr)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// Dial connects with a server.
func (s *Station) Dial(ctx context.Context, to netip.AddrPort) (link *Link, err error) {
	err = peer.Ask(ctx, to, peer.ConnectTime, func(ctx context.Context) error {
		conn, err := s.Endpoint.Dial(ctx, to)
		link = &Link{Endpoint: s.Endpoint, Conn: conn}
		return err
	})
	return link, err
}

// Err says why the device is not what it was, nil while it is.
func (s *Station) Err() error { return s.dev.Err() }

// Bind returns a context that ends with the device, too, because of which it is then.
func (s *Station) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-ctx.Done():
		case <-s.dev.Done():
			cancel(cmp.Or(s.dev.Err(), engine.ErrClosed))
		}
	}()
	return ctx, func() { cancel(nil) }
}
