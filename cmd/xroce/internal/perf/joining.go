package perf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/oob/perftest"
	"xroce/roce"
	machine "xroce/roce/cm"
)

// Join connects the queue pairs of a test, which are in INIT, in their order. It is before their
// keys are told. A server may put others into their places, which more makes, because who asks
// may not be there; those that are not used are closed.
func (m *Managed) Join(
	ctx context.Context, qps []*engine.QP, s cm.Setup, more func() (*engine.QP, error),
) error {
	connect, between := m.askAll, func() {}
	if !m.dial {
		between = m.refuseWaiting
		connect = func(ctx context.Context, qps []*engine.QP, s cm.Setup) error {
			return m.acceptAll(ctx, qps, s, more)
		}
	}
	if _, err := m.keys(perftest.Endpoint{}, between); err != nil {
		return err
	}
	ctx, stop := m.whileThere(ctx)
	defer stop()
	if err := connect(ctx, qps, s); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	_, err := m.Keys(perftest.Endpoint{})
	return err
}

// refuseWaiting refuses who has asked a server so far. Its client asks when it has the server's
// keys, so these are others: a second client of the client's host must not get a queue pair of the
// test.
func (m *Managed) refuseWaiting() {
	now, cancel := context.WithCancel(context.Background())
	cancel() // so nobody is waited for
	for range m.listener.Waiting() {
		r, err := m.listener.Accept(now)
		if err != nil {
			return
		}
		// Who gave up need not be told.
		_ = r.Reject(nil)
	}
}

// whileThere returns a context that ends when the connection of the exchange does, with that as
// its cause. stop must be called.
func (m *Managed) whileThere(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-m.over:
			cancel(m.err)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// ask makes one connection to the server.
func (m *Managed) ask(ctx context.Context, s cm.Setup) (c *cm.Conn, err error) {
	s.LocalAddr = m.from
	err = peer.Ask(ctx, m.at, m.patience, func(ctx context.Context) (err error) {
		c, err = m.manager.Dial(ctx, m.at, s)
		return err
	})
	if errors.Is(err, cm.ErrTimeout) {
		err = fmt.Errorf("%w Does it run with -R, too?", err)
	}
	return c, err
}

// How often a client tries again while the server does not listen, and after what
// time: the tool stops listening after each connection of the exchange.
const (
	joinTries = 10
	joinAfter = 100 * time.Millisecond
)

// askAgain is ask for a server that is about to listen again.
func (m *Managed) askAgain(ctx context.Context, s cm.Setup) (c *cm.Conn, err error) {
	for range joinTries {
		c, err = m.ask(ctx, s)
		var refused *cm.RejectedError
		if !errors.As(err, &refused) || refused.Reason != machine.ReasonInvalidServiceID {
			return c, err
		}
		select {
		case <-time.After(joinAfter):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		// The refusal has moved it to ERR; the next attempt begins in RESET.
		if err := s.QP.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// askAll connects queue pairs of a client, one after the other.
func (m *Managed) askAll(ctx context.Context, qps []*engine.QP, s cm.Setup) error {
	for i, qp := range qps {
		s.QP = qp
		c, err := m.askAgain(ctx, s)
		if err != nil {
			return fmt.Errorf("connect QP %d of %d: %w", i+1, len(qps), err)
		}
		m.conns = append(m.conns, c)
	}
	return nil
}

// A joining is a server that connects queue pairs of a test. A request in the client's name need
// not be the client's: several are answered, each on a queue pair of its own.
type joining struct {
	*Managed
	setup cm.Setup
	more  func() (*engine.QP, error) // makes another queue pair

	mu   sync.Mutex
	idle []*engine.QP // in INIT, for nobody yet
}

// spareJoins is how many requests are answered beside those that are wanted: each has a queue pair
// as large as those of the test.
const spareJoins = 8

// acceptAll connects as many queue pairs as there are, and puts those that are connected into their
// places, in the order in which the client asked.
func (m *Managed) acceptAll(
	ctx context.Context, qps []*engine.QP, s cm.Setup, more func() (*engine.QP, error),
) error {
	j := &joining{Managed: m, setup: s, more: more, idle: slices.Clone(qps)}
	all, err := cm.Meeting[*cm.Conn]{
		Next: j.next, Accept: j.accept, Places: len(qps) + spareJoins,
		Leave: (*cm.Conn).Destroy,
	}.Meet(ctx, len(qps))
	for _, qp := range j.idle {
		qp.Close()
	}
	if err != nil {
		return fmt.Errorf("accept at %s: %w", m.at, err)
	}
	for i, c := range all {
		qps[i] = c.QP()
	}
	m.conns = all
	return nil
}

// next waits for a request of the host that the exchange is with: the queue pairs of a test are not
// for whoever asks.
func (j *joining) next(ctx context.Context) (*cm.Request, error) {
	for {
		r, err := j.listener.Accept(ctx)
		if err != nil || r.RemoteAddr().Addr() == j.talk.RemoteAddr().Addr() {
			return r, err
		}
		// Who gave up need not be told.
		_ = r.Reject(nil)
	}
}

// accept answers a request, on a queue pair that is closed if that fails.
func (j *joining) accept(ctx context.Context, r *cm.Request) (*cm.Conn, error) {
	qp, err := j.queuePair()
	if err != nil {
		_ = r.Reject(nil) // as above
		return nil, err
	}
	s := j.setup
	s.QP = qp
	c, err := r.Accept(ctx, s)
	if err != nil {
		qp.Close()
	}
	return c, err
}

// queuePair takes a queue pair that is for nobody yet, or makes one.
func (j *joining) queuePair() (*engine.QP, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.idle); n > 0 {
		qp := j.idle[0]
		j.idle = j.idle[1:]
		return qp, nil
	}
	return j.more()
}
