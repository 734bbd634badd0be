package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	"xroce/roce/mem"
)

// Defaults of Cmatose and Udaddy, those of the originals.
const (
	CmatosePort    = 7471
	UdaddyPort     = 7174
	DefaultSize    = 100
	DefaultCount   = 10
	MaxConnections = 1024 // ours: each has a queue pair and memory
)

// Cmatose says how to talk: Count messages of Size bytes over each connection, first
// from the server to the client, then back. Without messages there are only
// connections.
type Cmatose struct {
	Addr        netip.AddrPort // of the server
	Source      netip.Addr     // of the client, the zero Addr for the one that fits
	Connections int
	Count       int   // messages each way, at most roce.MaxWR
	Size        int   // bytes of a message
	TClass      uint8 // of the client: traffic class of both directions
	AckTimeout  uint8 // of the client: local ACK timeout code, 0 for the default
}

// bytesOfMessage is what the queues have for a message in each direction: two work requests and two
// completions.
const bytesOfMessage = 128

// cmatoseRetries is the retry count that cmatose asks for.
const cmatoseRetries = 5

// A talker is one connection.
type talker struct {
	*Cmatose
	*line
	out, in        *engine.MR
	sent, received int
	begun          error // of send, of a server
}

// newTalker makes a connection by join, which is given what it needs.
func (s *Station) newTalker(
	c *Cmatose, join func(cm.Setup) (*cm.Conn, error),
) (t *talker, err error) {
	t = &talker{Cmatose: c}
	depth := max(c.Count, 1)
	if t.line, err = s.newLine(2 * depth); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.free()
		}
	}()
	if t.out, err = t.register(c.Size, 0); err != nil {
		return nil, err
	}
	if t.in, err = t.register(c.Size, mem.LocalWrite); err != nil {
		return nil, err
	}
	for i := range t.out.Bytes() {
		t.out.Bytes()[i] = byte(i)
	}
	t.conn, err = join(cm.Setup{
		PD: t.pd, Init: t.init(depth, depth), ResponderRes: 1, InitiatorDepth: 1,
		RetryCount: cmatoseRetries, LocalAddr: c.Source, TClass: c.TClass,
		AckTimeout: c.AckTimeout, Prepare: t.supply,
	})
	return t, err
}

// supply posts a receive for each message.
func (t *talker) supply(qp *engine.QP) error {
	for range t.Count {
		err := qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{t.in.SGE(0, t.Size)}})
		if err != nil {
			return err
		}
	}
	return nil
}

// send posts all messages.
func (t *talker) send() error {
	for range t.Count {
		err := t.conn.QP().PostSend(&roce.SendWR{
			Opcode: roce.OpSend, SGList: []roce.SGE{t.out.SGE(0, t.Size)},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// await waits until so many messages were sent and received.
func (t *talker) await(ctx context.Context, sent, received int) error {
	for t.sent < sent || t.received < received {
		wc, err := t.next(ctx)
		if err != nil {
			return fmt.Errorf("after %d of %d messages sent and %d received: %w",
				t.sent, t.Count, t.received, err)
		}
		if wc.Opcode == roce.WCSend {
			t.sent++
			continue
		}
		t.received++
		if int(wc.ByteLen) != t.Size {
			return fmt.Errorf("message %d has %d bytes, not %d: start both ends with the same -S",
				t.received, wc.ByteLen, t.Size)
		}
	}
	return nil
}

// talkers are the connections of a test.
type talkers []*talker

// each does something with each connection, and says with which one it went wrong.
func (ts talkers) each(do func(*talker) error) error {
	for i, t := range ts {
		if err := do(t); err != nil {
			return fmt.Errorf("connection %d of %d: %w", i+1, len(ts), err)
		}
	}
	return nil
}

// hangUp ends all connections, each like line.hangUp. All are told before one is
// waited for.
func (ts talkers) hangUp(ctx context.Context) {
	for _, t := range ts {
		t.conn.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, lingerTime)
	defer cancel()
	for _, t := range ts {
		t.hangUp(ctx)
	}
}

// talkers is how the connections of a test are met.
func (s *Station) talkers(
	l *listener, c *Cmatose, complain func(string, error), change func(cm.Setup) cm.Setup,
) cm.Meeting[*talker] {
	return cm.Meeting[*talker]{
		Next: l.accept, Places: c.Connections + sparePlaces(2*c.Size+c.Count*bytesOfMessage),
		Failed: func(r *cm.Request, err error) { complain(r.RemoteAddr().String(), err) },
		Accept: func(ctx context.Context, r *cm.Request) (*talker, error) {
			t, err := s.newTalker(c, func(setup cm.Setup) (_ *cm.Conn, err error) {
				return s.acceptTalker(ctx, r, change(setup))
			})
			if err != nil {
				// Accept has refused it itself, and then this does nothing.
				_ = r.Reject(nil)
			}
			return t, err
		},
		Leave: func(t *talker) { t.abandon() },
	}
}

// acceptTalker connects to who asks, on a queue pair that is given back if that fails.
func (s *Station) acceptTalker(
	ctx context.Context, r *cm.Request, setup cm.Setup,
) (_ *cm.Conn, err error) {
	if setup.QP, err = s.Dev.CreateQP(setup.PD, setup.Init); err != nil {
		return nil, err
	}
	conn, err := r.Accept(ctx, setup)
	if err != nil {
		setup.QP.Close()
	}
	return conn, err
}

// ServeCmatose is the server: it waits for all connections and talks first. A connection that ends
// before it has taken a message was none, and another one takes its place.
func (s *Station) ServeCmatose(ctx context.Context, c Cmatose) (Result, error) {
	s.Say("cmatose: starting server\n")
	l, err := s.listen(c.Addr)
	if err != nil {
		return Result{}, err
	}
	defer l.close()
	ts, err := s.cmatoseFirst(ctx, l, &c)
	defer func() { ts.hangUp(ctx) }()
	if err != nil {
		return Result{}, err
	}
	s.met()
	if c.Count > 0 {
		s.Say("receiving data transfers\n")
		err := ts.each(func(t *talker) error { return t.await(ctx, t.Count, t.Count) })
		if err != nil {
			return Result{}, err
		}
		s.Say("data transfers complete\n")
	}
	s.Say("cmatose: disconnecting\n")
	ts.hangUp(ctx)
	s.Say("disconnected\ntest complete\nreturn status 0\n")
	return ts.result(), ctx.Err()
}

// cmatoseFirst meets the clients, and is what the server says to them.
func (s *Station) cmatoseFirst(
	ctx context.Context, l *listener, c *Cmatose,
) (ts talkers, err error) {
	complain := s.complainer()
	say := sync.OnceFunc(func() { s.Say("initiating data transfers\ncompleting sends\n") })
	for {
		meeting := s.talkers(l, c, complain, func(setup cm.Setup) cm.Setup { return setup })
		more, err := meeting.Meet(ctx, c.Connections-len(ts))
		if err != nil || c.Count == 0 {
			return append(ts, more...), err
		}
		say()
		for _, t := range more {
			t.begun = t.send()
		}
		heard := ts
		for i, t := range more {
			err := t.begun
			if err == nil {
				err = t.await(ctx, t.Count, 0)
			}
			switch {
			case err == nil:
				heard = append(heard, t)
			case ctx.Err() == nil && gone(err):
				complain(t.conn.RemoteAddr().String(), err)
				t.abandon()
			default:
				return append(heard, more[i:]...), err
			}
		}
		if ts = heard; len(ts) == c.Connections {
			return ts, nil
		}
	}
}

// gone reports whether an error says that nobody is there: it hung up, or is silent.
func gone(err error) bool {
	var failed *roce.WorkError
	return hungUp(err) || errors.Is(err, peer.ErrSilence) ||
		errors.As(err, &failed) && failed.Status == roce.StatusRetryExcErr
}

func (ts talkers) result() Result {
	r := Result{Connections: len(ts)}
	for _, t := range ts {
		r.Messages += t.sent
	}
	return r
}

// DialCmatose is the client: it makes the connections, answers, and waits until the
// server hangs up.
func (s *Station) DialCmatose(ctx context.Context, c Cmatose) (Result, error) {
	s.Say("cmatose: starting client\n")
	s.Say("cmatose: connecting\n")
	var ts talkers
	defer func() { ts.hangUp(ctx) }()
	for range c.Connections {
		t, err := s.newTalker(&c, func(setup cm.Setup) (*cm.Conn, error) {
			return s.dial(ctx, c.Addr, setup)
		})
		if err != nil {
			return Result{}, err
		}
		ts = append(ts, t)
	}
	if c.Count > 0 {
		s.Say("receiving data transfers\n")
		if err := ts.each(func(t *talker) error { return t.await(ctx, 0, t.Count) }); err != nil {
			return Result{}, err
		}
		s.Say("sending replies\n")
		if err := ts.each((*talker).send); err != nil {
			return Result{}, err
		}
		s.Say("data transfers complete\n")
	}
	if err := ts.each(func(t *talker) error { return t.farewell(ctx) }); err != nil {
		return Result{}, err
	}
	s.Say("test complete\nreturn status 0\n")
	return ts.result(), nil
}

// farewell waits until the server hangs up, which it does when it has heard all. It
// may do so before its last acknowledgement is here, which may be of several messages, so that is
// told and is no failure. It is not waited for for ever: one that lost its power says nothing.
func (t *talker) farewell(ctx context.Context) error {
	if err := t.await(ctx, t.Count, t.Count); err != nil && !hungUp(err) {
		return err
	}
	if t.sent < t.Count {
		t.station.Log.Warn("the server hung up before it acknowledged all messages: it may have "+
			"been interrupted", "acknowledged", t.sent, "messages", t.Count)
	}
	within, stop := t.station.patience(ctx)
	defer stop()
	select {
	case <-t.conn.Done():
	case <-within.Done():
		return context.Cause(within)
	}
	if err := t.conn.Err(); !errors.Is(err, cm.ErrHungUp) {
		return err
	}
	return nil
}
