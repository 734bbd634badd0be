package tunnel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	"xroce/roce/mem"
)

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

	posted int           // receives that are not complete; of the receiver
	taken  chan struct{} // closed when it is over, and all that came is taken
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
			_ = request.Reject(t.crowded(c, request.Private())) // as above
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
		posted: connReceives, taken: make(chan struct{}),
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
	late, stop := t.overdue()
	defer stop()
	gone := false
	select {
	case <-c.conn.Done():
	case <-ctx.Done():
	case <-c.stale:
		gone = true
	case <-late:
		gone = true
	}
	c.awaitTaken(ctx)
	if gone { // who sent on it: the end of the time-wait is not waited for
		c.conn.Destroy()
	} else {
		t.hangUp(c.conn)
	}
	c.close(t)
}

// awaitTaken ends a connection, and returns when all that came on it is taken: it is acknowledged,
// so the peer does not send it again, and would go with the queue pair.
func (c *incoming) awaitTaken(ctx context.Context) {
	c.conn.Close() // never fails; what is posted is flushed, behind all that came
	select {
	case <-c.taken:
	case <-ctx.Done(): // nobody takes any more
	}
}

// overdueAfter is for how many renewals a connection over UC may not be replaced: who sends on it
// replaces it after one, or gives it up some seconds later.
const overdueAfter = 3

// overdue has something when a connection on which a peer sends should have been replaced by
// another one long ago. Over UC nothing else tells that the peer has given it up, if its last word
// is lost; over RC the keepalive does.
func (t *Tunnel) overdue() (late <-chan time.Time, stop func()) {
	if t.config.Over != OverUC {
		return nil, func() {}
	}
	timer := time.NewTimer(overdueAfter * t.config.renew)
	return timer.C, func() { timer.Stop() }
}

// close gives back what a connection had.
func (c *incoming) close(t *Tunnel) {
	_ = c.qp.Close() // never fails
	t.in.remove(c)
	// Nothing is bound to it and no layout refers to it, so this cannot be refused.
	_ = c.mr.Deregister()
}

// accept makes the connection.
func (c *incoming) accept(
	ctx context.Context, t *Tunnel, request *cm.Request, answer []byte,
) (err error) {
	ctx, cancel := context.WithTimeout(ctx, seekTime)
	defer cancel()
	if err := c.open(t); err != nil {
		c.peer.counts.drop(dropPlaces)
		_ = request.Reject(nil) // who gave up need not be told
		return err
	}
	setup := t.setup(c.qp, answer)
	setup.Prepare = c.prepare
	c.conn, err = request.Accept(ctx, setup)
	if err != nil {
		c.close(t)
	}
	return err
}

// open makes what a connection has.
func (c *incoming) open(t *Tunnel) (err error) {
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
	if err := t.in.add(c); err != nil {
		_ = c.qp.Close() // never fails
		return errors.Join(err, c.mr.Deregister())
	}
	return nil
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

// add has room made for all that a connection may complete at once, as when it ends, and takes
// what comes on it from then on.
func (r *receiver) add(c *incoming) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.entries + connReceives; n > r.cq.Depth() {
		if err := r.cq.Resize(max(n, 2*r.cq.Depth())); err != nil {
			return fmt.Errorf("tunnel: room for one more connection: %w", err)
		}
	}
	r.entries += connReceives
	r.conns[c.qp.QPN()] = c
	return nil
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

// remove is the end of add, behind that of the queue pair: with that goes what it has completed.
func (r *receiver) remove(c *incoming) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries -= connReceives
	if r.conns[c.qp.QPN()] == c {
		delete(r.conns, c.qp.QPN())
	}
}

// takeMessage takes a message of a connection. What is flushed because that is over is nothing, but
// behind the last of it nothing more comes; what comes of one that is gone is nothing at all.
func (r *receiver) takeMessage(wc *roce.Completion) {
	r.mu.Lock()
	c := r.conns[wc.QPN]
	r.mu.Unlock()
	if c == nil {
		return
	}
	if wc.Status != roce.StatusSuccess {
		c.flushed()
		return
	}
	var hint inner.Hint
	if wc.Flags&roce.WCWithImm != 0 {
		hint = inner.Hint(wc.Imm)
	}
	b := c.buf[int(wc.WRID)*c.size:][:receiveHead+int(wc.ByteLen)]
	r.handle(c.peer, c.key, uint64(wc.QPN), b, receiveHead, hint)
	if c.post(wc.WRID) != nil { // a queue pair that is closed takes none
		c.flushed()
	}
}

// flushed counts a receive in whose place no other is posted.
func (c *incoming) flushed() {
	if c.posted--; c.posted == 0 {
		close(c.taken)
	}
}
