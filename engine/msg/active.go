package msg

import (
	"context"
	"fmt"
	"sync"

	"xroce/roce"
	"xroce/roce/msg"
)

// An Active is an active message, as its handler sees it.
type Active struct {
	From *Conn
	Tag  uint64
	Data []byte // the message; not to be used after the handler has returned
}

// A Handler is called with the active messages of a number: see Endpoint.Handle.
type Handler func(m *Active)

// Handle has active messages of a number handled, which no receive is asked for (UCX
// ucp_worker_set_am_recv_handler), by none when h is nil. It returns ErrClosed after Close, and
// msg.ErrInvalid of package roce/msg for the numbers 65534 and 65535, which are the endpoint's own:
// see Export.
//
// All handlers of an endpoint run on one goroutine of it, one call after the other, without any
// lock: those of a peer in the order in which it sent, those of several peers in turn. A handler
// may use all of this package but Endpoint.Close, which waits for it. It may post messages, an
// answer for one: see Conn.PostSend and Conn.Inject. It should not wait for a peer: all other
// active messages wait meanwhile, in memory up to Options.Machine.Unexpected bytes of each
// peer, then in the slots of the peer, with what that has sent behind them; and two peers whose
// handlers wait for each other do so for ever. There is no order between a handler and a receive.
// A panic in a handler ends the program, as on any goroutine; a handler that is to survive
// it recovers.
//
// An active message may have Options.ActiveLimit bytes. Of a longer one, and of one without a
// handler, the sender is told by an error if it was announced (msg.StatusError), and not if it
// went in a slot: that is dropped and counted.
func (e *Endpoint) Handle(number uint16, h Handler) error {
	if number >= reservedHandler {
		return fmt.Errorf("%w: handler %d is the endpoint's own", msg.ErrInvalid, number)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || e.ending {
		return ErrClosed
	}
	if h == nil {
		e.machine.Handle(number, nil)
		return nil
	}
	e.active.start(e)
	e.machine.Handle(number, func(_ roce.Time, m *msg.Active) (*msg.Receive, msg.Status) {
		return e.takeActive(m, h)
	})
	return nil
}

// SendActive sends a message to the handler of the peer with a number: else it is as Send.
func (c *Conn) SendActive(ctx context.Context, handler uint16, data []byte) error {
	return c.send(ctx, &Send{Buffers: [][]byte{data}, Active: true, Handler: handler})
}

// actives are the active messages of an endpoint that wait for their handlers. All but running and
// wake is under the endpoint's lock.
type actives struct {
	running sync.WaitGroup
	wake    chan struct{} // nil before the first handler is there
	ready   []*Conn       // whose first message is whole
	spare   []*delivery
	refused bool // a message was not taken, because too many wait
}

// start begins to call handlers. The caller holds the endpoint's lock, and it has not ended.
func (a *actives) start(e *Endpoint) {
	if a.wake == nil {
		a.wake = make(chan struct{}, 1)
		a.running.Go(e.runHandlers)
	}
}

// A delivery is an active message from when its handler is known until that returns.
type delivery struct {
	active  Active
	handler Handler
	receive msg.Receive
	pieces  [1][]byte
	whole   bool // or failed
}

// Bounds of what is kept for later messages.
const (
	spareDeliveries = 64
	spareBytes      = 4096
)

// deliveryCost is about what is kept of an active message beside its data, in bytes.
const deliveryCost = 512

// takeActive makes room for a message of a peer. The machine calls it, under the endpoint's lock.
func (e *Endpoint) takeActive(m *msg.Active, h Handler) (*msg.Receive, msg.Status) {
	c := m.From.User.(*Conn)
	cost := m.Length + deliveryCost
	switch {
	case m.Length > e.options.ActiveLimit:
		return nil, msg.StatusTooLarge
	case len(c.actives) > 0 && c.activeBytes+cost > e.options.Machine.Unexpected:
		e.active.refused = true
		return nil, msg.StatusBusy
	}
	var d *delivery
	if n := len(e.active.spare); n > 0 {
		d, e.active.spare = e.active.spare[n-1], e.active.spare[:n-1]
	} else {
		d = &delivery{}
	}
	if cap(d.active.Data) < m.Length {
		d.active.Data = make([]byte, m.Length, max(m.Length, 64))
	}
	d.active = Active{From: c, Tag: m.Tag, Data: d.active.Data[:m.Length]}
	d.handler, d.whole = h, false
	d.pieces[0] = d.active.Data
	d.receive.Pieces, d.receive.User = d.pieces[:], d
	c.actives = append(c.actives, d)
	c.activeBytes += cost
	return &d.receive, msg.StatusOK
}

// complete is told that the message is here, or will not be. The caller holds the endpoint's lock.
func (d *delivery) complete() {
	c := d.active.From
	d.whole = true
	if c.actives[0] == d {
		c.endpoint.active.hand(c)
	}
}

// hand has the goroutine look at the first message of a peer.
func (a *actives) hand(c *Conn) {
	a.ready = append(a.ready, c)
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// runHandlers calls handlers until the endpoint ends.
func (e *Endpoint) runHandlers() {
	for {
		select {
		case <-e.active.wake:
		case <-e.done:
			return
		}
		for d := e.nextActive(); d != nil; d = e.nextActive() {
			if d.receive.Err == nil {
				d.handler(&d.active)
			}
			e.retire(d)
		}
	}
}

// nextActive returns the next message for a handler, nil when there is none, or the endpoint has
// ended.
func (e *Endpoint) nextActive() *delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := &e.active
	if len(a.ready) == 0 || e.err != nil {
		return nil
	}
	c := a.ready[0]
	a.ready = append(a.ready[:0], a.ready[1:]...)
	return c.actives[0]
}

// retire is done with a message.
func (e *Endpoint) retire(d *delivery) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a, c := &e.active, d.active.From
	c.actives[0] = nil
	c.actives = append(c.actives[:0], c.actives[1:]...)
	c.activeBytes -= len(d.pieces[0]) + deliveryCost
	if len(c.actives) > 0 && c.actives[0].whole {
		a.hand(c)
	}
	d.active, d.handler, d.pieces[0] = Active{Data: d.pieces[0][:0]}, nil, nil
	if len(a.spare) < spareDeliveries && cap(d.active.Data) <= spareBytes {
		a.spare = append(a.spare, d)
	}
	if a.refused && e.err == nil {
		a.refused = false
		e.machine.Resume(e.dev.Now())
		e.progress(e.dev.Now())
	}
}
