package msg

import (
	"context"
	"fmt"

	"xroce/roce"
	"xroce/roce/msg"
)

// Flush waits until all messages that were posted before are at the peer: in its memory, under its
// acknowledgement, whatever the protocol (ucp_ep_flush). It does not say that the peer has received
// them: Send.Level does, of each. The error is that of the context, or why the connection is
// over.
//
// Send.Fence has a message wait for the same, and nobody else.
func (c *Conn) Flush(ctx context.Context) error {
	e := c.endpoint
	s := &Send{conn: c}
	s.core.User = s
	s.progress.begin()
	e.mu.Lock()
	now := e.dev.Now()
	err := c.core.Flush(now, &s.core)
	if err == nil {
		e.progress(now)
	}
	e.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Wait(ctx)
}

// maxInjects is how many messages of Inject of a connection may wait for slots.
const maxInjects = 64

// An injection is a message with memory of its own.
type injection struct {
	core msg.Send
	bufs [1][]byte
	own  []byte
	conn *Conn // while it is in use
}

// Inject sends a short message, whose memory may be used again when it returns, and never waits
// (fi_inject). It is copied to a slot of the peer, or, when none is free, to memory of the
// endpoint. It returns roce.ErrQueueFull when 64 of the connection wait like that, msg.ErrInvalid
// of package roce/msg for a message that is longer than Options.Machine.EagerLimit, or why the
// connection is over. What comes of it is not told: Flush waits for it.
func (c *Conn) Inject(tag uint64, data []byte) error { return c.inject(tag, data, false, 0) }

// inject is Inject, also of an active message.
func (c *Conn) inject(tag uint64, data []byte, active bool, handler uint16) error {
	e := c.endpoint
	if limit := e.options.Machine.EagerLimit; len(data) > limit {
		return fmt.Errorf("%w: %d bytes to inject: at most %d", msg.ErrInvalid, len(data), limit)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	i := c.takeInjection()
	if i == nil {
		return fmt.Errorf("%w: %d messages wait for slots", roce.ErrQueueFull, maxInjects)
	}
	s := &i.core
	i.bufs[0] = data
	s.Pieces, s.Tag, s.Protocol, s.User = i.bufs[:], tag, msg.Eager, i
	s.Active, s.Handler = active, handler
	now := e.dev.Now()
	if err := c.core.Send(now, s); err != nil {
		c.giveInjection(i)
		return err
	}
	e.progress(now)
	if i.conn != nil { // it is under way
		i.own = append(i.own[:0], data...)
		i.bufs[0] = i.own
	}
	return nil
}

// takeInjection returns one that is not in use, nil when all are. The caller holds the endpoint's
// lock, as that of giveInjection does.
func (c *Conn) takeInjection() *injection {
	var i *injection
	switch n := len(c.injections); {
	case n > 0:
		i, c.injections = c.injections[n-1], c.injections[:n-1]
	case c.injecting == maxInjects:
		return nil
	default:
		i = &injection{}
	}
	c.injecting++
	i.conn = c
	return i
}

// giveInjection is done with one.
func (c *Conn) giveInjection(i *injection) {
	i.conn, i.bufs[0] = nil, nil
	c.injecting--
	c.injections = append(c.injections, i)
}
