package rdmacm

import (
	"context"
	"net/netip"

	"xroce/engine/cm"
)

// SimplePort is the port of rdma_server.
const SimplePort = 7471

// simpleLen is the length of both messages in bytes.
const simpleLen = 16

// ServeSimple is rdma_server: it takes a connection, a message, and sends one. Who connects and
// sends no message is not its client.
func (s *Station) ServeSimple(ctx context.Context, at netip.AddrPort) (Result, error) {
	s.Say("rdma_server: start\n")
	l, err := s.listen(at)
	if err != nil {
		return Result{}, err
	}
	defer l.close()
	talkers := s.talkers(l, simple(at), s.complainer(), simpleSetup)
	connect := talkers.Accept
	talkers.Accept = func(ctx context.Context, r *cm.Request) (*talker, error) {
		t, err := connect(ctx, r)
		if err != nil {
			return nil, err
		}
		if err := t.await(ctx, 0, 1); err != nil {
			t.abandon()
			return nil, err
		}
		return t, nil
	}
	met, err := talkers.Meet(ctx, 1)
	if err != nil {
		return Result{}, err
	}
	s.met()
	t := met[0]
	defer t.hangUp(ctx)
	if err := t.send(); err != nil {
		return Result{}, err
	}
	// The client hangs up when it has our message, perhaps before it acknowledges.
	if err := t.await(ctx, 1, 1); err != nil && !hungUp(err) {
		return Result{}, err
	}
	s.Say("rdma_server: end 0\n")
	return Result{Connections: 1, Messages: 1}, nil
}

// DialSimple is rdma_client: it makes a connection, sends a message, and takes one.
func (s *Station) DialSimple(ctx context.Context, to netip.AddrPort) (Result, error) {
	s.Say("rdma_client: start\n")
	t, err := s.newTalker(simple(to), func(setup cm.Setup) (*cm.Conn, error) {
		return s.dial(ctx, to, simpleSetup(setup))
	})
	if err != nil {
		return Result{}, err
	}
	defer t.hangUp(ctx)
	if err := t.send(); err != nil {
		return Result{}, err
	}
	// The answer says that our message arrived, acknowledged or not.
	if err := t.await(ctx, 0, 1); err != nil {
		return Result{}, err
	}
	s.Say("rdma_client: end 0\n")
	return Result{Connections: 1, Messages: 1}, nil
}

// simple is one message each way.
func simple(at netip.AddrPort) *Cmatose {
	return &Cmatose{Addr: at, Connections: 1, Count: 1, Size: simpleLen}
}

// simpleSetup gives a connection the numbers that rdma_cm takes by default.
func simpleSetup(s cm.Setup) cm.Setup {
	s.ResponderRes, s.InitiatorDepth, s.RetryCount = 0, 0, 0 // the defaults
	return s
}
