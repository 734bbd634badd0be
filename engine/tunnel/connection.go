package tunnel

import (
	"cmp"
	"context"
	"errors"
	"time"

	"xroce/encap"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
)

// Attributes of connections.
const (
	keepalive         = 5 * time.Second
	defaultAckTimeout = 14 // 67 ms
	// extensions are without the reorder window, in which 64 packets may overtake a missing one
	// before that is sent again: at 1 % loss most of the time one is missing, and the window has
	// 256. A connection has one source port, so its packets take one path.
	extensions = roce.ExtSelectiveRepeat
)

// kind is that of the datagrams that are longest.
func (t *Tunnel) kind() encap.Kind {
	switch {
	case t.inside.Kind == TAP:
		return encap.Ethernet
	case !t.config.Format.Spec().Carries(encap.IPv4):
		return encap.IPv6
	}
	return encap.IPv4
}

// forget drops what the bridge knows of a peer.
func (t *Tunnel) forget(p *peer) {
	t.bridge.Lock()
	t.forgetAddresses(p)
	t.bridge.Unlock()
	t.suppression.forget(p.port)
}

// forgetAddresses is forget of the tables of addresses. The caller holds their lock.
func (t *Tunnel) forgetAddresses(p *peer) {
	if t.table != nil {
		t.table.Forget(p.port)
	}
	if t.hosts != nil {
		t.hosts.Forget(p.port)
	}
}

// seekConnection keeps a connection to a peer on which a lane sends. The peer has its own for
// the other way, as Linux has in IPoIB: so nobody has to agree who is to begin.
func (t *Tunnel) seekConnection(ctx context.Context, p *peer, l *lane) {
	var told told
	pause := seekPause
	for {
		conn, w, err := t.dial(ctx, p, l)
		if err == nil {
			told.last, pause = "", seekPause
			t.config.Logger.Info("peer connected", "peer", p.addr.String())
			err = t.keep(ctx, p, l, conn, w)
			t.forget(p)
		} else {
			pause = min(2*pause, seekPauseTo)
		}
		if ctx.Err() != nil {
			return
		}
		told.tell(t, p, err)
		if !p.pause(ctx, l.number, pause) {
			return
		}
	}
}

// renewal is how often a connection is replaced by another one, 0 for never: keys change, and
// over UC it is how a peer is noticed that went without a word. Who sends notices by the answer
// that does not come, who receives by the connection that is not replaced.
func (t *Tunnel) renewal() time.Duration {
	switch {
	case t.config.Over == OverUC && t.config.Key != nil:
		return min(t.config.renew, t.config.Rekey)
	case t.config.Over == OverUC:
		return t.config.renew
	case t.config.Key != nil:
		return t.config.Rekey
	}
	return 0
}

// keep uses a connection until it is over, which the error explains. It is replaced by another
// one now and then, if need be.
func (t *Tunnel) keep(
	ctx context.Context, p *peer, l *lane, conn *cm.Conn, w *way,
) error {
	var renew <-chan time.Time
	if d := t.renewal(); d > 0 {
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		renew = ticker.C
	}
	p.ways[l.number].Store(w)
	p.counts.connects.Add(1) // not before there is a way
	for {
		select {
		case <-renew:
			next, wNext, err := t.dial(ctx, p, l)
			if err == nil {
				p.ways[l.number].Store(wNext)
				p.counts.connects.Add(1)
				t.drain(ctx, conn, w)
				conn, w = next, wNext
				continue
			}
			if t.config.Over == OverRC || w.outlasts(err) {
				continue // the old one is as good until the next time
			}
		case <-p.hints[l.number]:
			if p.instance.Load() == w.instance {
				continue
			}
		case <-w.failed: // the peer does not answer, which the connection need not notice
		case <-conn.Done():
		case <-ctx.Done():
		}
		p.ways[l.number].Store(nil)
		err := cmp.Or(conn.Err(), errSilent)
		t.noteLost(p, conn)
		t.running.Go(func() {
			t.hangUp(conn)
			w.gone.Store(true)
		})
		return err
	}
}

// A refusedError says that a peer is there, but refuses what it was asked for.
type refusedError struct {
	error
	instance uint64 // of the peer that refuses
}

func (e *refusedError) Unwrap() error { return e.error }

// outlasts reports whether the way is as good as before an attempt at another one that came to
// nothing: the peer to which it leads has said so itself.
func (w *way) outlasts(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused) && refused.instance == w.instance
}

// errSilent says that a peer is not there any more, or not the one that was.
var errSilent = errors.New("tunnel: the peer does not answer, or began anew")

// How long a connection that was replaced may take for what was posted, and how often to look.
const (
	drainTime = 2 * time.Second
	drainLook = 10 * time.Millisecond
)

// drain ends a connection that was replaced, once all that goes by it has arrived.
func (t *Tunnel) drain(ctx context.Context, conn *cm.Conn, w *way) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	ticker := time.NewTicker(drainLook)
	defer ticker.Stop()
	for w.inUse() && ctx.Err() == nil {
		select {
		case <-ticker.C:
		case <-conn.Done():
			cancel()
		case <-ctx.Done():
		}
	}
	t.hangUp(conn)
	w.gone.Store(true)
}

// hangUp ends a connection, and closes its queue pair once no packet for it is under way.
func (t *Tunnel) hangUp(conn *cm.Conn) {
	conn.Close() // never fails
	select {
	case <-conn.Released():
	case <-t.dev.Done():
	}
	_ = conn.QP().Close() // never fails
}

// dial connects to a peer, with a proof of our address if it wants one.
func (t *Tunnel) dial(ctx context.Context, p *peer, l *lane) (*cm.Conn, *way, error) {
	ctx, cancel := context.WithTimeout(ctx, seekTime)
	defer cancel()
	conn, w, err := t.dialOnce(ctx, p, l)
	if errors.Is(err, errCookie) {
		conn, w, err = t.dialOnce(ctx, p, l)
	}
	return conn, w, err
}

// dialOnce asks a peer for a connection.
func (t *Tunnel) dialOnce(ctx context.Context, p *peer, l *lane) (*cm.Conn, *way, error) {
	if err := t.checkTag(p.addr); err != nil {
		return nil, nil, err
	}
	ask, state, err := t.ask(t.greeting(p), p.cookie.Load())
	if err != nil {
		return nil, nil, err
	}
	qp, err := t.createQP(engine.QPInit{
		SendCQ: l.cq, RecvCQ: l.cq, MaxSendWR: connWork, MaxRecvWR: 1,
	})
	if err != nil {
		return nil, nil, err
	}
	setup := t.setup(qp, ask)
	setup.AckTimeout, setup.PKeyIndex = t.config.ackTimeout, t.config.PKeyIndex
	setup.TClass, setup.SL = t.config.Mark.of(0), t.config.Mark.Priority
	conn, err := t.manager.DialService(ctx, p.addr, t.service(), setup)
	if err != nil {
		_ = qp.Close() // never fails
		return nil, nil, t.explain(p, err)
	}
	their, sealer, err := t.answered(state, conn.Private())
	if err != nil {
		t.hangUp(conn)
		return nil, nil, err
	}
	w := t.newWay(qp, &their)
	w.sealer = sealer
	if t.config.Over == OverUC {
		w.whole = false // what is lost of it would be all of it
	}
	return conn, w, nil
}

// createQP makes a queue pair of a connection.
func (t *Tunnel) createQP(init engine.QPInit) (*engine.QP, error) {
	if init.Type = t.config.Over.qpType(); init.Type == roce.TypeRC {
		init.Extensions = extensions
	}
	return t.dev.CreateQP(t.pd, init)
}

// setup is what both ends say of a connection.
func (t *Tunnel) setup(qp *engine.QP, private []byte) cm.Setup {
	s := cm.Setup{QP: qp, Private: private}
	if t.config.Over == OverRC {
		s.Keepalive = keepalive
		s.PathBytes = func(theirs []byte) int { return fullPacket(private, theirs) }
	}
	return s
}
