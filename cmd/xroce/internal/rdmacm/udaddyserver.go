package rdmacm

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"xroce/cmd/xroce/internal/plain"
	"xroce/engine"
	"xroce/engine/cm"
	machine "xroce/roce/cm"
	"xroce/roce/wire"
)

// A correspondent is whom a server has messages from.
type correspondent struct {
	gid wire.GID
	qpn uint32
}

// A heard correspondent is one that the server answers.
type heard struct {
	vector   engine.AddressVector
	messages int
}

// A udaddyServer has messages from as many connections as it waits for. Whoever looks it up is
// told where to send, because a lookup has any address as its source and nobody confirms the
// answer: the connections are those that send.
type udaddyServer struct {
	*Station
	Udaddy
	box    *mailbox
	from   map[correspondent]*heard
	full   atomic.Bool // all have been heard: nobody else is told
	ration *plain.Ration
}

// ServeUdaddy is the server. It takes all messages on one queue pair, where the
// original has one for each connection: the client cannot tell. Without messages there is nothing
// to tell a client from who is not there, and the first lookups are taken for connections, as in
// the original (connect_handler).
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
	u := &udaddyServer{
		Station: s, Udaddy: c, box: box, from: map[correspondent]*heard{},
		ration: &plain.Ration{Lines: maxComplaints, Span: complaintSpan},
	}
	serve := u.serveMessages
	if c.Count == 0 {
		serve = u.serveLookups
	}
	if err := serve(ctx, pd); err != nil {
		return Result{}, err
	}
	s.Say("test complete\nreturn status 0\n")
	return Result{Connections: c.Connections, Messages: c.Connections * c.Count}, nil
}

// listen has lookups answered with the number of the queue pair for whom allow allows. The
// returned function ends it and must be called, with an error too.
func (u *udaddyServer) listen(
	allow func(from netip.AddrPort) bool,
) (stop func(), err error) {
	var listeners []*cm.Listener
	stop = func() {
		for _, l := range listeners {
			l.Close()
		}
	}
	for _, at := range anyAddress(u.Addr) {
		l, err := u.Manager.ListenDatagram(at, cm.Datagrams{
			QP:    u.box.qp,
			Allow: func(from netip.AddrPort, _ []byte) bool { return allow(from) },
		})
		if err != nil {
			return stop, err
		}
		listeners = append(listeners, l)
	}
	u.listening(u.Addr)
	return stop, nil
}

// serveLookups waits until as many have asked as there are connections. Others are refused.
func (u *udaddyServer) serveLookups(ctx context.Context, _ *engine.PD) error {
	all := make(chan struct{})
	var mu sync.Mutex
	known := map[netip.AddrPort]bool{}
	stop, err := u.listen(func(from netip.AddrPort) bool {
		mu.Lock()
		defer mu.Unlock()
		if known[from] {
			return true // it did not get the answer
		}
		if len(known) == u.Connections {
			return false
		}
		if known[from] = true; len(known) == u.Connections {
			close(all)
		}
		return true
	})
	defer stop()
	if err != nil {
		return err
	}
	select {
	case <-all:
	case <-u.Dev.Done():
		return u.Dev.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
	u.met()
	return nil
}

// serveMessages takes all messages, then answers as many as came.
func (u *udaddyServer) serveMessages(ctx context.Context, pd *engine.PD) error {
	stop, err := u.listen(func(netip.AddrPort) bool { return !u.full.Load() })
	defer stop()
	if err != nil {
		return err
	}
	total := u.Connections * u.Count
	for i := range total {
		if err := u.next(ctx, i == 0); err != nil {
			return fmt.Errorf("after %d of %d messages: %w", i, total, u.explain(err))
		}
		if i == 0 {
			u.met()
			u.Say("receiving data transfers\n")
		}
	}
	u.Say("sending replies\n")
	for who, h := range u.from {
		ah, err := u.Dev.CreateAH(ctx, pd, h.vector)
		if err != nil {
			return fmt.Errorf("answer 0x%06x of %s: %w", who.qpn, who.gid, err)
		}
		if err := u.box.send(ctx, ah, who.qpn, machine.QKeyUDP, h.messages); err != nil {
			return err
		}
	}
	if err := u.box.flush(ctx); err != nil {
		return err
	}
	u.Say("data transfers complete\n")
	return nil
}

// next waits for a message of a connection: the first for as long as it takes, and another one not
// for ever, whatever comes meanwhile that is none.
func (u *udaddyServer) next(ctx context.Context, first bool) error {
	if !first {
		within, stop := u.patience(ctx)
		defer stop()
		ctx = within
	}
	for {
		if took, err := u.take(ctx); took || err != nil {
			return err
		}
	}
}

// take waits for a message and reports whether it is of a connection: one of nobody's, or of one
// connection too many, is told of and goes nowhere.
func (u *udaddyServer) take(ctx context.Context) (took bool, err error) {
	l, err := u.box.receive(ctx)
	if err != nil {
		return false, err
	}
	av, err := u.Dev.ReplyVector(l.grh[:])
	if err == nil {
		err = l.err
	}
	if err == nil {
		err = u.count(correspondent{av.DGID, l.qpn}, av)
	}
	if err != nil {
		u.complain(u.ration, av.DGID.Addr().String(), err)
	}
	return err == nil, nil
}

// count counts a message, of as many connections as there are and as many of each as it sends.
func (u *udaddyServer) count(who correspondent, av engine.AddressVector) error {
	h := u.from[who]
	if h == nil {
		if len(u.from) == u.Connections {
			return fmt.Errorf("0x%06x is one connection more than the %d that are waited for: "+
				"start both ends with the same -c", who.qpn, u.Connections)
		}
		h = &heard{}
		u.from[who] = h
		u.full.Store(len(u.from) == u.Connections)
	}
	if h.messages == u.Count {
		return fmt.Errorf("0x%06x sends more than %d messages: start both ends with the same -C",
			who.qpn, u.Count)
	}
	h.vector = av
	h.messages++
	return nil
}
