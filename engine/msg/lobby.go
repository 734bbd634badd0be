package msg

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"xroce/engine/cm"
	"xroce/roce/msg"
)

// handshakes is how many peers of a listener may be connecting, or be connected and not be
// accepted, beside those that wait for that at the connection manager.
const handshakes = 16

// handshakeGrace is how long a peer that connects keeps its place when others want it.
const handshakeGrace = time.Second

// A lobby is where the peers of a listener are until they are accepted. It has a bounded number of
// places, which nobody can hold who is not getting ready: when all are taken, and somebody waits,
// the peer gives way that has been connecting for longest, of the source that has most.
type lobby struct {
	endpoint *Endpoint
	core     *cm.Listener
	service  msg.Service
	accepted chan *Conn
	ctx      context.Context // ends with close
	cancel   context.CancelFunc
	under    sync.WaitGroup
	left     chan struct{} // holds one when a place was given back

	mu     sync.Mutex
	guests []*guest // the one that came first is first
}

// A guest is a peer that has a place.
type guest struct {
	source    netip.Prefix
	since     time.Time
	giveWay   context.CancelFunc
	connected bool // and waits for Accept
}

// receive connects with peers of a listener, which it closes with an error: ErrClosed.
func (e *Endpoint) receive(core *cm.Listener, service msg.Service) (*lobby, error) {
	l := &lobby{
		endpoint: e, core: core, service: service, accepted: make(chan *Conn),
		left: make(chan struct{}, 1),
	}
	l.ctx, l.cancel = context.WithCancel(e.ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ending || e.err != nil {
		_ = core.Close() // never fails
		return nil, ErrClosed
	}
	l.under.Go(l.run)
	e.leaving.Go(l.under.Wait)
	return l, nil
}

// close ends it, and every connection that was not accepted.
func (l *lobby) close() {
	l.cancel()
	l.under.Wait()
}

// run takes requests, those first of which most is known.
func (l *lobby) run() {
	defer l.core.Close()
	for {
		r, err := l.core.Accept(l.ctx)
		if err != nil {
			l.cancel() // the manager has ended, if not we
			return
		}
		theirs, ok := l.endpoint.judge(r, l.service)
		if !ok {
			continue
		}
		g, ctx := l.enter(r.RemoteAddr().Addr())
		if g == nil {
			l.endpoint.refuse(r, l.service, ErrClosed)
			return
		}
		l.under.Go(func() {
			defer l.leave(g)
			l.connect(ctx, g, r, &theirs)
		})
	}
}

// enter waits for a place, nil when the listener ends. The context ends when the place is wanted
// by others.
func (l *lobby) enter(from netip.Addr) (*guest, context.Context) {
	for {
		l.mu.Lock()
		if len(l.guests) < handshakes {
			ctx, cancel := context.WithCancel(l.ctx)
			g := &guest{source: sourceOf(from), since: time.Now(), giveWay: cancel}
			l.guests = append(l.guests, g)
			l.mu.Unlock()
			return g, ctx
		}
		patience := time.Hour // until somebody calls Accept
		if slow := l.slowest(); slow != nil {
			if patience = handshakeGrace - time.Since(slow.since); patience <= 0 {
				slow.giveWay()
				patience = time.Hour
			}
		}
		l.mu.Unlock()
		timer := time.NewTimer(patience)
		select {
		case <-l.left:
		case <-timer.C:
		case <-l.ctx.Done():
		}
		timer.Stop()
		if l.ctx.Err() != nil {
			return nil, nil
		}
	}
}

// slowest is the guest that came first, of those that are connecting and of the source of which
// most are, nil when none is. The caller holds mu.
func (l *lobby) slowest() *guest {
	counts := map[netip.Prefix]int{}
	most := 0
	for _, g := range l.guests {
		if !g.connected {
			counts[g.source]++
			most = max(most, counts[g.source])
		}
	}
	for _, g := range l.guests {
		if !g.connected && counts[g.source] == most {
			return g
		}
	}
	return nil
}

// leave gives a place back.
func (l *lobby) leave(g *guest) {
	g.giveWay()
	l.mu.Lock()
	l.guests = slices.DeleteFunc(l.guests, func(x *guest) bool { return x == g })
	l.mu.Unlock()
	select {
	case l.left <- struct{}{}:
	default:
	}
}

// connect connects with a peer, and waits until somebody accepts it, also one that has gone then:
// what it had sent can be received.
func (l *lobby) connect(ctx context.Context, g *guest, r *cm.Request, theirs *msg.Hello) {
	c, err := l.endpoint.accept(ctx, r, theirs, l.service)
	if err != nil {
		return // which the peer was told
	}
	l.mu.Lock()
	g.connected = true
	l.mu.Unlock()
	select {
	case l.accepted <- c:
	case <-l.ctx.Done():
		c.drop()
	}
}

// sourceOf is who is at an address: of IPv6 all of a network are one.
func sourceOf(a netip.Addr) netip.Prefix {
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.WithZone("").Prefix(bits) // not of too many bits
	return p
}
