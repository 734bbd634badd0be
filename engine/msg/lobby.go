package msg

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"xroce/engine/cm"
	"xroce/engine/crowd"
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
	cores    []*cm.Listener // of the rails
	service  msg.Service
	accepted chan *Conn
	ctx      context.Context // ends with close
	cancel   context.CancelFunc
	under    sync.WaitGroup
	left     chan struct{} // holds one when a place was given back

	mu        sync.Mutex
	guests    []*guest // the one that came first is first
	listening int      // rails on which it does
}

// A guest is a peer that has a place.
type guest struct {
	source    netip.Prefix
	since     time.Time
	giveWay   context.CancelFunc
	connected bool // and waits for Accept
}

// receive connects with peers who ask at an address of each rail. The error is that of
// cm.Manager.Listen, ErrRails of roce/msg, or ErrClosed.
func (e *Endpoint) receive(at []netip.AddrPort, service msg.Service) (*lobby, error) {
	cores, err := e.listen(at)
	if err != nil {
		return nil, err
	}
	l := &lobby{
		endpoint: e, cores: cores, service: service, accepted: make(chan *Conn),
		left: make(chan struct{}, 1),
	}
	l.ctx, l.cancel = context.WithCancel(e.ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ending || e.err != nil {
		closeAll(cores)
		return nil, ErrClosed
	}
	l.listening = len(cores)
	for i, core := range cores {
		l.under.Go(func() { l.run(e.nics[i], core) })
	}
	e.leaving.Go(l.under.Wait)
	return l, nil
}

// listen listens on the rails, at an address each.
func (e *Endpoint) listen(at []netip.AddrPort) (cores []*cm.Listener, err error) {
	if len(at) > len(e.nics) {
		return nil, fmt.Errorf("msg: %w: %d addresses, %d rails", msg.ErrRails, len(at),
			len(e.nics))
	}
	for i, where := range at {
		core, err := e.nics[i].manager.Listen(where)
		if err != nil {
			closeAll(cores)
			return nil, err
		}
		cores = append(cores, core)
	}
	return cores, nil
}

func closeAll(cores []*cm.Listener) {
	for _, core := range cores {
		_ = core.Close() // never fails
	}
}

// close ends it, and every connection that was not accepted.
func (l *lobby) close() {
	l.cancel()
	l.under.Wait()
}

// run takes requests of a rail, those first of which most is known.
func (l *lobby) run(n *nic, core *cm.Listener) {
	defer core.Close()
	for {
		r, err := core.Accept(l.ctx)
		if err != nil {
			l.leaveRail() // the manager has ended, if not we
			return
		}
		theirs, ok := l.endpoint.judge(n, r, l.service)
		if !ok {
			continue
		}
		g, ctx := l.enter(r.RemoteAddr().Addr())
		if g == nil {
			l.endpoint.refuse(n, r, l.service, ErrClosed)
			return
		}
		l.under.Go(func() {
			defer l.leave(g)
			l.connect(ctx, g, n, r, &theirs)
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
			g := &guest{source: crowd.Host(from), since: time.Now(), giveWay: cancel}
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
	i := crowd.GivesWay(l.guests, func(g *guest) (netip.Prefix, bool) {
		return g.source, !g.connected
	})
	if i < 0 {
		return nil
	}
	return l.guests[i]
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

// leaveRail ends it when there is no rail left.
func (l *lobby) leaveRail() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listening--; l.listening == 0 {
		l.cancel()
	}
}

// connect connects with a peer, and waits until somebody accepts it, also one that has gone then:
// what it had sent can be received. A further rail joins its connection.
func (l *lobby) connect(
	ctx context.Context, g *guest, n *nic, r *cm.Request, theirs *msg.Hello,
) {
	if theirs.Session != (msg.Token{}) {
		l.endpoint.admitRail(ctx, n, r, theirs)
		return
	}
	c, err := l.endpoint.accept(ctx, n, r, theirs, l.service)
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
