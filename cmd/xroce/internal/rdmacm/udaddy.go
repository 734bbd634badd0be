package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
)

// Udaddy says how to exchange datagrams: Count of Size bytes from each connection of
// the client to the server, then as many back. A datagram that is lost is not sent
// again: then both ends wait until they give up. Without messages there are only lookups.
type Udaddy struct {
	Addr        netip.AddrPort // of the server
	Connections int
	Count       int
	Size        int   // bytes of a message, at most the port's MTU
	TClass      uint8 // of the client: traffic class of both directions
}

// check refuses what no datagram can carry.
func (c *Udaddy) check(dev *engine.Device) error {
	if mtu := dev.ActiveMTU().Bytes(); c.Count > 0 && c.Size > mtu {
		return fmt.Errorf("%w: message size %d is larger than active mtu %d", roce.ErrInvalid,
			c.Size, mtu)
	}
	return nil
}

// largeDatagram is the payload that every Ethernet takes.
const largeDatagram = 1024

// explain adds to the error of datagrams that do not come what may be why. Nobody acknowledges
// them, so it is not known; but the lookup, which is small, was answered.
func (c *Udaddy) explain(err error) error {
	if c.Size <= largeDatagram || !errors.Is(err, peer.ErrSilence) {
		return err
	}
	return fmt.Errorf("%w; datagrams of %d bytes may be too large for something in between, "+
		"which the lookup was not: 'xroce check IFACE HOST' finds what passes", err, c.Size)
}

// A writer is one connection of a client.
type writer struct {
	*mailbox
	to        *roce.AH
	qpn, qkey uint32 // of the server
}

// DialUdaddy is the client.
func (s *Station) DialUdaddy(ctx context.Context, c Udaddy) (Result, error) {
	s.Say("udaddy: starting client\n")
	s.Say("udaddy: connecting\n")
	if err := c.check(s.Dev); err != nil {
		return Result{}, err
	}
	writers := make([]writer, c.Connections)
	for i := range writers {
		var err error
		if writers[i], err = s.newWriter(ctx, &c); err != nil {
			return Result{}, fmt.Errorf("connection %d of %d: %w", i+1, c.Connections, err)
		}
	}
	if c.Count > 0 {
		if err := s.converse(ctx, &c, writers); err != nil {
			return Result{}, err
		}
	}
	s.Say("test complete\nreturn status 0\n")
	return Result{Connections: c.Connections, Messages: c.Connections * c.Count}, nil
}

// newWriter makes a connection of a client.
func (s *Station) newWriter(ctx context.Context, c *Udaddy) (writer, error) {
	pd := s.Dev.AllocPD()
	box, err := s.newMailbox(pd, c.Count, c.Size)
	if err != nil {
		return writer{}, err
	}
	found, err := s.lookup(ctx, pd, c.Addr)
	if err != nil {
		return writer{}, err
	}
	w := writer{mailbox: box, to: found.AH, qpn: found.QPN, qkey: found.QKey}
	if c.TClass != 0 {
		w.to, err = s.marked(ctx, pd, c)
	}
	return w, err
}

// marked makes an address handle with the traffic class that was asked for.
func (s *Station) marked(ctx context.Context, pd *engine.PD, c *Udaddy) (*roce.AH, error) {
	index, err := s.Dev.SourceGID(c.Addr.Addr())
	if err != nil {
		return nil, err
	}
	return s.Dev.CreateAH(ctx, pd, engine.AddressVector{
		DGID: wire.GIDFromAddr(c.Addr.Addr()), SGIDIndex: index, TClass: c.TClass,
	})
}

// converse sends all messages and waits for as many.
func (s *Station) converse(ctx context.Context, c *Udaddy, writers []writer) error {
	s.Say("initiating data transfers\n")
	for i := range writers {
		w := &writers[i]
		if err := w.send(ctx, w.to, w.qpn, w.qkey, c.Count); err != nil {
			return err
		}
	}
	s.Say("receiving data transfers\n")
	for i := range writers {
		for n := range c.Count {
			if err := writers[i].hear(ctx); err != nil {
				return fmt.Errorf("connection %d of %d, after %d of %d answers: %w", i+1,
					c.Connections, n, c.Count, c.explain(err))
			}
		}
	}
	s.Say("data transfers complete\n")
	return nil
}

// hear waits for a message of the server, not for ever. What others send is none, and no reason to
// wait longer.
func (w *writer) hear(ctx context.Context) error {
	within, stop := w.station.patience(ctx)
	defer stop()
	for {
		l, err := w.receive(within)
		switch {
		case err != nil:
			return err
		case l.from == w.qpn:
			return l.err
		}
	}
}
