package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"xroce/cmd/xroce/internal/plain"
	"xroce/engine/cm"
	"xroce/roce"
)

// errNoReads says that a client is none of rping's.
var errNoReads = errors.New("the client does not let itself be read from: it is not rping")

// ServeRping is the server of one client, until that hangs up. Who connects and does not say where
// its text is was none: that is logged, and the server waits for the next one.
func (s *Station) ServeRping(ctx context.Context, c Rping) (Result, error) {
	l, err := s.listen(c.Addr)
	if err != nil {
		return Result{}, err
	}
	defer l.close()
	pingers := s.pingers(c, l.accept, s.complainer())
	connect := pingers.Accept
	pingers.Accept = func(ctx context.Context, r *cm.Request) (*pinger, error) {
		p, err := connect(ctx, r)
		if err != nil {
			return nil, err
		}
		if p.first, err = p.hear(ctx); err != nil {
			p.abandon()
			return nil, fmt.Errorf("it did not ping: %w", err)
		}
		p.heard = true
		return p, nil
	}
	met, err := pingers.Meet(ctx, 1)
	if err != nil {
		return Result{}, err
	}
	s.met()
	p := met[0]
	defer p.hangUp(ctx)
	if err := s.pongs(ctx, p); err != nil {
		return Result{}, err
	}
	s.Log.Info("client disconnected", "address", p.conn.RemoteAddr().String())
	return Result{Connections: 1, Messages: p.rounds}, nil
}

// pingers is how clients are met: whoever asks is answered, and counts when he confirms that.
func (s *Station) pingers(
	c Rping, next func(context.Context) (*cm.Request, error), complain func(string, error),
) cm.Meeting[*pinger] {
	return cm.Meeting[*pinger]{
		Next: next, Places: 1 + sparePlaces(c.Size),
		Failed: func(r *cm.Request, err error) { complain(r.RemoteAddr().String(), err) },
		Accept: func(ctx context.Context, r *cm.Request) (*pinger, error) {
			p, err := s.connect(ctx, c, r)
			if err != nil && p != nil {
				p.abandon()
			}
			return p, err
		},
		Leave: func(p *pinger) { p.abandon() },
	}
}

// ServeRpings serves all clients that come, each on its own and at most MaxPingers at a
// time, until the context ends, which is its error. What goes wrong with a client is
// logged, also that it gave way to others.
func (s *Station) ServeRpings(ctx context.Context, c Rping) error {
	l, err := s.listen(c.Addr)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer l.close()
	var places places
	news := &plain.Ration{Lines: maxComplaints, Span: complaintSpan}
	refused := func(address netip.AddrPort) {
		s.inform(news, "client refused", "address", address.String(),
			"clients", MaxPingers, "of one address", maxOfAddress)
	}
	next := func(ctx context.Context) (*cm.Request, error) {
		for {
			r, err := l.accept(ctx)
			if err != nil || places.free(r.RemoteAddr().Addr()) {
				return r, err
			}
			// Who gave up need not be told.
			_ = r.Reject(nil)
			refused(r.RemoteAddr())
		}
	}
	ration := &plain.Ration{Lines: maxComplaints, Span: complaintSpan}
	failed := func(address string, err error) { s.complain(ration, address, err) }
	return s.pingers(c, next, failed).Each(ctx, func(p *pinger) {
		address := p.conn.RemoteAddr()
		attending, hangUp := context.WithCancelCause(ctx)
		if p.seat = places.take(address.Addr(), hangUp); p.seat == nil {
			hangUp(nil) // others had asked at the same time
			p.abandon()
			refused(address)
			return
		}
		running.Go(func() {
			defer hangUp(nil)
			defer p.seat.leave()
			switch err := s.pongs(attending, p); {
			case err == nil:
				s.inform(news, "client disconnected", "address", address.String())
			case ctx.Err() == nil:
				s.complain(ration, address.String(), err)
			}
			p.abandon() // its place is that of others now, whatever its time-wait is
		})
	})
}

// How many lines are logged of clients, in what time: anybody can be one.
const (
	maxComplaints = 100
	complaintSpan = time.Minute
)

// complainer logs who did not become a client.
func (s *Station) complainer() func(address string, err error) {
	ration := &plain.Ration{Lines: maxComplaints, Span: complaintSpan}
	return func(address string, err error) { s.complain(ration, address, err) }
}

// complain logs that a client failed.
func (s *Station) complain(r *plain.Ration, address string, err error) {
	ok, left := r.Spend(time.Now())
	if left > 0 {
		s.Log.Warn("more clients failed, without a line for each", "clients", left)
	}
	if ok {
		s.Log.Warn("client failed", "address", address, "error", err)
	}
}

// inform logs what happened with a client and is no failure.
func (s *Station) inform(r *plain.Ration, what string, args ...any) {
	ok, left := r.Spend(time.Now())
	if left > 0 {
		s.Log.Info("more clients came and went, without a line for each", "lines", left)
	}
	if ok {
		s.Log.Info(what, args...)
	}
}

// connect connects to the client of a request. What it returns with an error is to be given back.
func (s *Station) connect(ctx context.Context, c Rping, r *cm.Request) (*pinger, error) {
	if r.Params().MaxRdAtomic == 0 {
		// Who gave up need not be told.
		_ = r.Reject(nil)
		return nil, errNoReads
	}
	p, err := s.newPinger(c, false)
	if err != nil {
		return nil, errors.Join(err, r.Reject(nil))
	}
	if err := p.accept(ctx, r); err != nil {
		return p, fmt.Errorf("accept %s: %w", r.RemoteAddr(), err)
	}
	return p, nil
}

// pongs answers a client until it hangs up, or something goes wrong.
func (s *Station) pongs(ctx context.Context, p *pinger) error {
	for {
		source, err := p.begin(ctx)
		if hungUp(err) {
			return nil // between two rounds, as it should
		}
		if err == nil {
			err = p.pong(ctx, source)
		}
		if err != nil {
			return fmt.Errorf("ping %d: %w", p.rounds, err)
		}
		p.rounds++
	}
}

// begin hears where the client's text is, if that was not heard when it came.
func (p *pinger) begin(ctx context.Context) (info, error) {
	if p.heard {
		p.heard = false
		return p.first, nil
	}
	return p.hear(ctx)
}

// accept connects to a client, which may not take longer than between two words: who asks
// may not be there. The queue pair is ours, so that it can be given back if that fails.
func (p *pinger) accept(ctx context.Context, r *cm.Request) (err error) {
	limited, cancel := p.station.patience(ctx)
	defer cancel()
	setup := p.setup()
	if p.qp, err = p.station.Dev.CreateQP(p.pd, setup.Init); err != nil {
		return errors.Join(err, r.Reject(nil))
	}
	setup.QP = p.qp
	if p.conn, err = r.Accept(limited, setup); err != nil && limited.Err() != nil {
		err = context.Cause(limited)
	}
	return err
}

// pong is what a server does in a round after it has heard of the client's text.
func (p *pinger) pong(ctx context.Context, source info) error {
	if source.size == 0 || int64(source.size) > int64(p.Size) {
		return fmt.Errorf("the client's buffer has %d bytes and ours %d: start both ends with "+
			"the same -S", source.size, p.Size)
	}
	err := p.reach(ctx, roce.OpRead, source, int(source.size))
	if err != nil {
		return fmt.Errorf("READ from %#x, rkey %#x: %w", source.buf, source.rkey, err)
	}
	ping := text(p.data.Bytes()[:source.size])
	if len(ping) == int(source.size) {
		return fmt.Errorf("the client's %d bytes are no text: no zero byte ends them", source.size)
	}
	if p.Verbose {
		p.station.Say("server ping data: %s\n", plain.Text(string(ping)))
	}
	if err := p.tell(info{}); err != nil {
		return err
	}
	sink, err := p.hear(ctx)
	if err != nil {
		return err
	}
	n := len(ping) + 1
	if int64(sink.size) < int64(n) {
		return fmt.Errorf("the client wants %d bytes back in %d", n, sink.size)
	}
	if err := p.reach(ctx, roce.OpWrite, sink, n); err != nil {
		return fmt.Errorf("WRITE to %#x, rkey %#x: %w", sink.buf, sink.rkey, err)
	}
	return p.tell(info{})
}

// reach READs from the client's memory or WRITEs to it, and waits for that.
func (p *pinger) reach(ctx context.Context, op roce.Opcode, at info, n int) error {
	err := p.conn.QP().PostSend(&roce.SendWR{
		Opcode: op, SGList: []roce.SGE{p.data.SGE(0, n)}, RemoteAddr: at.buf, RKey: at.rkey,
	})
	if err != nil {
		return err
	}
	done := roce.WCRead
	if op == roce.OpWrite {
		done = roce.WCWrite
	}
	_, err = p.await(ctx, done)
	return err
}
