package msg

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"xroce/roce/msg"
)

// Bounds of dialling a rail again.
const (
	defaultRedial = 100 * time.Millisecond
	// slowestRedial is how many times as long as the first wait the longest one is.
	slowestRedial = 16
	// redialTimeout is how long an attempt may take: who does not answer by then is asked anew.
	redialTimeout = 10 * time.Second
)

// keep dials a rail of a connection, and again whenever it is lost, until the connection is over.
// It runs on a goroutine of its own. r is the rail that is there, nil for none yet.
func (c *Conn) keep(n *nic, to netip.AddrPort, r *rail) {
	ctx, cancel := context.WithCancel(c.endpoint.ctx)
	defer cancel()
	c.endpoint.keepers.Go(func() { // the end of the connection is that of an attempt
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	})
	first := c.endpoint.options.Redial
	wait := first
	for {
		if r != nil {
			select {
			case <-r.gone:
			case <-ctx.Done():
				return
			}
		} else if again, err := c.redial(ctx, n, to); err == nil {
			r, wait = again, first
			continue
		} else if c.unknown(err) {
			return
		}
		r = nil
		if !pause(ctx, wait) {
			return
		}
		wait = min(2*wait, slowestRedial*first)
	}
}

// redial is join, in bounded time.
func (c *Conn) redial(ctx context.Context, n *nic, to netip.AddrPort) (*rail, error) {
	ctx, cancel := context.WithTimeout(ctx, redialTimeout)
	defer cancel()
	return c.join(ctx, n, to)
}

// unknown reports whether the peer has said that it has no such connection any more, which ends
// ours when no rail of it is left.
func (c *Conn) unknown(err error) bool {
	var why *msg.StatusError
	if !errors.As(err, &why) || why.Status != msg.StatusSession {
		return false
	}
	e := c.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	if !c.core.Alive() {
		c.core.Abort(e.dev.Now(), err)
		e.progress(e.dev.Now())
	}
	return c.err != nil
}

// pause waits, and reports whether the context is not over.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
