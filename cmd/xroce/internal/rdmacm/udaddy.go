package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	machine "xroce/roce/cm"
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

// A correspondent is whom a server has messages from.
type correspondent struct {
	gid wire.GID
	qpn uint32
}

// ServeUdaddy is the server. It takes all messages on one queue pair, where the
// original has one for each connection: the client cannot tell.
func (s *Station) ServeUdaddy(ctx context.Context, c Udaddy) (Result, error) {
	s.Say("udaddy: starting server\n")
	if err := c.check(s.Dev); err != nil {
		return Result{}, err
	}
	pd := s.Dev.AllocPD()
	box, err := s.newMailbox(pd, c.Connections*c.Count, c.Size)
	if err != nil {
		return Result{}, err
	}
	complete, stop, err := s.answerLookups(&c, box.qp)
	defer stop()
	if err != nil {
		return Result{}, err
	}
	select {
	case <-complete:
	case <-s.Dev.Done():
		return Result{}, s.Dev.Err()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	s.met()
	if c.Count > 0 {
		if err := s.correspond(ctx, &c, pd, box); err != nil {
			return Result{}, err
		}
	}
	s.Say("test complete\nreturn status 0\n")
	return Result{Connections: c.Connections, Messages: c.Connections * c.Count}, nil
}

// answerLookups tells as many connections as there are to be the number of a queue
// pair. Afterwards, complete is closed, and others are refused. The returned function
// ends it and must be called, with an error too.
func (s *Station) answerLookups(
	c *Udaddy, qp *engine.QP,
) (complete <-chan struct{}, stop func(), err error) {
	var listeners []*cm.Listener
	stop = func() {
		for _, l := range listeners {
			l.Close()
		}
	}
	all := make(chan struct{})
	// Guarded by the manager, which asks for one at a time.
	known := map[netip.AddrPort]bool{}
	allow := func(from netip.AddrPort, _ []byte) bool {
		if known[from] {
			return true // it did not get the answer
		}
		if len(known) == c.Connections {
			return false
		}
		if known[from] = true; len(known) == c.Connections {
			close(all)
		}
		return true
	}
	for _, at := range anyAddress(c.Addr) {
		l, err := s.Manager.ListenDatagram(at, cm.Datagrams{QP: qp, Allow: allow})
		if err != nil {
			return nil, stop, err
		}
		listeners = append(listeners, l)
	}
	s.listening(c.Addr)
	return all, stop, nil
}

// correspond takes all messages, then answers as many as came.
func (s *Station) correspond(ctx context.Context, c *Udaddy, pd *engine.PD, box *mailbox) error {
	s.Say("receiving data transfers\n")
	from := map[correspondent]int{} // messages
	vectors := map[correspondent]engine.AddressVector{}
	for i := range c.Connections * c.Count {
		l, err := box.receive(ctx)
		if err != nil {
			return fmt.Errorf("after %d of %d messages: %w", i, c.Connections*c.Count,
				c.explain(err))
		}
		av, err := s.Dev.ReplyVector(l.grh[:])
		if err != nil {
			return err
		}
		who := correspondent{av.DGID, l.qpn}
		vectors[who] = av
		from[who]++
	}
	s.Say("sending replies\n")
	for who, av := range vectors {
		ah, err := s.Dev.CreateAH(ctx, pd, av)
		if err != nil {
			return fmt.Errorf("answer 0x%06x of %s: %w", who.qpn, who.gid, err)
		}
		if err := box.send(ctx, ah, who.qpn, machine.QKeyUDP, from[who]); err != nil {
			return err
		}
	}
	if err := box.flush(ctx); err != nil {
		return err
	}
	s.Say("data transfers complete\n")
	return nil
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
			if _, err := writers[i].receive(ctx); err != nil {
				return fmt.Errorf("connection %d of %d, after %d of %d answers: %w", i+1,
					c.Connections, n, c.Count, c.explain(err))
			}
		}
	}
	s.Say("data transfers complete\n")
	return nil
}
