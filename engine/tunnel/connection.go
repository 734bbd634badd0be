package tunnel

import (
	"cmp"
	"context"
	"errors"
	"time"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	"xroce/roce/mem"
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
// over UC it is how a peer is noticed that went without a word.
func (t *Tunnel) renewal() time.Duration {
	switch {
	case t.config.Over == OverUC && t.config.Key != nil:
		return min(refresh, t.config.Rekey)
	case t.config.Over == OverUC:
		return refresh
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
			if t.config.Over == OverRC {
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

// errSilent says that a peer is not there any more, or not the one that was.
var errSilent = errors.New("tunnel: the peer does not answer, or began anew")

// How long a connection that was replaced may take for what was posted, and how often to look.
const (
	drainTime = 2 * time.Second
	drainLook = 10 * time.Millisecond
)

// drain ends a connection that was replaced, once all that was posted has arrived.
func (t *Tunnel) drain(ctx context.Context, conn *cm.Conn, w *way) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	ticker := time.NewTicker(drainLook)
	defer ticker.Stop()
	for w.posted.Load() > 0 && ctx.Err() == nil {
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

// An incoming is a connection on which a peer sends.
type incoming struct {
	peer     *peer
	instance uint64        // of the peer's process
	stale    chan struct{} // has something when that has begun anew
	key      *session      // nil without a key
	conn     *cm.Conn
	qp       *engine.QP
	mr       *engine.MR
	buf      []byte // of mr: what was received may be read when mr is gone
	size     int    // of a receive
}

// How many connections a peer may have to us: one of each of its lanes, and as many that take their
// place. Each has 4 MiB of receives, so that of strangers is less.
const (
	peerPlaces     = 2 * MaxQueues
	strangerPlaces = 8
)

// places is how many connections a peer may have.
func (t *Tunnel) places(p *peer) int32 {
	if p.learned && t.config.Key == nil {
		return strangerPlaces
	}
	return peerPlaces
}

// try puts something into a channel if there is room.
func try(c chan<- struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	default:
		return false
	}
}

// acceptConnections takes connections of peers, and refuses those of others.
func (t *Tunnel) acceptConnections(
	ctx context.Context, l *cm.Listener,
) {
	places := make(chan struct{}, t.config.mostPeers()*peerPlaces)
	for {
		request, err := l.Accept(ctx)
		if err != nil {
			t.fail(ctx, err)
			return
		}
		c, answer, err := t.welcome(request)
		if err != nil {
			_ = request.Reject(answer) // who gave up need not be told
			continue
		}
		if c.peer.incoming.Add(1) > t.places(c.peer) || !try(places) {
			c.peer.incoming.Add(-1)
			c.peer.counts.drop(dropPlaces)
			_ = request.Reject(nil)
			continue
		}
		t.running.Go(func() {
			defer func() {
				c.peer.incoming.Add(-1)
				<-places
			}()
			t.serve(ctx, c, request, answer)
		})
	}
}

// welcome says whether a connection is to be accepted, and what its peer is told.
func (t *Tunnel) welcome(request *cm.Request) (_ *incoming, answer []byte, err error) {
	from := request.RemoteAddr().Addr()
	p, their, err := t.admit(from, request.Via(), request.Private())
	if err != nil {
		return nil, t.refusal(from, err), err
	}
	if !t.sharesPartition(request.Params().Path.PKeyIndex) {
		t.countsOf(p).drop(dropPartition)
		return nil, t.hello.put(), errPartition
	}
	answer, key, err := t.answer(p, request.Private())
	if err != nil {
		t.countsOf(p).drop(dropKey)
		return nil, answer, err
	}
	if err := t.enroll(p); err != nil {
		return nil, t.refusal(from, err), err
	}
	return &incoming{
		peer: p, instance: their.instance, stale: make(chan struct{}, 1), key: key,
	}, answer, nil
}

// errPartition says that a request is for another partition than that of the tunnel.
var errPartition = errors.New("tunnel: another partition")

// sharesPartition reports whether a P_Key of the device, by its index, is of the partition of the
// tunnel: what a request asks for need not be what its hello says.
func (t *Tunnel) sharesPartition(index uint16) bool {
	asked, err := t.dev.QueryPKey(int(index))
	return err == nil && (asked^t.hello.pkey)&^roce.PKeyFull == 0
}

// serve takes what comes on one connection, until it is over.
func (t *Tunnel) serve(
	ctx context.Context, c *incoming, request *cm.Request, answer []byte,
) {
	if err := c.accept(ctx, t, request, answer); err != nil {
		t.config.Logger.Info("not connected", "peer", c.peer.addr.String(), "error", err.Error())
		return
	}
	// Not before: a request may be of somebody who only has the address of the peer in it.
	if c.peer.instance.Swap(c.instance) != c.instance {
		c.peer.wake()
		t.in.leave(c.peer, c.instance)
	}
	if c.peer.gone.Load() { // it was forgotten before this was there
		signal(c.stale)
	}
	select {
	case <-c.conn.Done():
	case <-c.stale:
	case <-ctx.Done():
	}
	t.hangUp(c.conn)
	c.close(t)
}

// close gives back what a connection had.
func (c *incoming) close(t *Tunnel) {
	t.in.remove(c)
	_ = c.qp.Close() // never fails
	// Nothing is bound to it and no layout refers to it, so this cannot be refused.
	_ = c.mr.Deregister()
}

// accept makes the connection.
func (c *incoming) accept(
	ctx context.Context, t *Tunnel, request *cm.Request, answer []byte,
) (err error) {
	ctx, cancel := context.WithTimeout(ctx, seekTime)
	defer cancel()
	c.size = align(receiveHead + t.config.Format.Spec().Room + t.overhead())
	c.buf = make([]byte, connReceives*c.size)
	if c.mr, err = t.dev.RegMR(t.pd, c.buf, mem.LocalWrite); err != nil {
		return err
	}
	c.qp, err = t.createQP(engine.QPInit{
		SendCQ: t.in.cq, RecvCQ: t.in.cq, MaxSendWR: 1, MaxRecvWR: connReceives,
		MaxInlineRecv: engine.NoInlineRecv,
	})
	if err != nil {
		return errors.Join(err, c.mr.Deregister())
	}
	t.in.add(c)
	setup := t.setup(c.qp, answer)
	setup.Prepare = c.prepare
	c.conn, err = request.Accept(ctx, setup)
	if err != nil {
		c.close(t)
	}
	return err
}

// prepare posts all receives.
func (c *incoming) prepare(*engine.QP) error {
	for i := range uint64(connReceives) {
		if err := c.post(i); err != nil {
			return err
		}
	}
	return nil
}

// post posts a receive of a message.
func (c *incoming) post(i uint64) error {
	sges := [1]roce.SGE{c.mr.SGE(int(i)*c.size+receiveHead, c.size-receiveHead)}
	return c.qp.PostRecv(&roce.RecvWR{WRID: i, SGList: sges[:]})
}

func (r *receiver) add(c *incoming) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[c.qp.QPN()] = c
}

// leave ends the connections by which a peer sent before it began anew: over UC nothing else
// would.
func (r *receiver) leave(p *peer, instance uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		if c.peer == p && c.instance != instance {
			signal(c.stale)
		}
	}
}

// dismiss ends the connections of a peer that is forgotten.
func (r *receiver) dismiss(p *peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		if c.peer == p {
			signal(c.stale)
		}
	}
}

func (r *receiver) remove(c *incoming) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns[c.qp.QPN()] == c {
		delete(r.conns, c.qp.QPN())
	}
}

// takeMessage takes a message of a connection. What is flushed because that is over, or comes
// of one that is gone, is nothing.
func (r *receiver) takeMessage(wc *roce.Completion) {
	r.mu.Lock()
	c := r.conns[wc.QPN]
	r.mu.Unlock()
	if c == nil || wc.Status != roce.StatusSuccess {
		return
	}
	var hint inner.Hint
	if wc.Flags&roce.WCWithImm != 0 {
		hint = inner.Hint(wc.Imm)
	}
	b := c.buf[int(wc.WRID)*c.size:][:receiveHead+int(wc.ByteLen)]
	r.handle(c.peer, c.key, uint64(wc.QPN), b, receiveHead, hint)
	_ = c.post(wc.WRID) // a connection that is over takes none, which its end tells
}
