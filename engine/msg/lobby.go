package msg

import (
	"context"
	"errors"
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

// doorLine is how many wait for such a place. The connection manager lets fewer wait for an answer,
// so what is too many has been given up there.
const doorLine = 256

// A lobby is where the peers of a listener are until they are accepted. It has a bounded number of
// places, not all for one source, and nobody can hold one who is not getting ready, or has hung up:
// when somebody waits, a peer gives way that is connecting, or that has hung up, chosen as
// crowd.Room does: by what is known of it, its station, its host. Further rails need no place: see
// join.
type lobby struct {
	endpoint *Endpoint
	cores    []*cm.Listener // of the rails
	service  msg.Service
	accepted chan *Conn
	ctx      context.Context // ends with close
	cancel   context.CancelFunc
	under    sync.WaitGroup

	mu   sync.Mutex
	room crowd.Room[*guest]
	// over are those whose connections ended before they were accepted, the first one first.
	over []*crowd.Visitor[*guest]

	joining   map[berth]*joining
	timer     *time.Timer // for when somebody is to give way, nil before that
	listening int         // rails on which it does
}

// A guest is a peer that asks.
type guest struct {
	nic     *nic
	request *cm.Request
	theirs  msg.Hello
	giveWay context.CancelFunc
	ended   time.Time     // when its connection did
	leaves  chan struct{} // closed when it gives way, that having ended
	told    bool          // it is closed
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
		room:    crowd.Room[*guest]{Places: handshakes, Line: doorLine, Turn: handshakeGrace},
		joining: map[berth]*joining{},
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

// run takes requests of a rail, those first of which most is known. It does not wait for places.
func (l *lobby) run(n *nic, core *cm.Listener) {
	defer core.Close()
	defer l.admit() // nobody any more
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
		g := &guest{nic: n, request: r, theirs: theirs, leaves: make(chan struct{})}
		if theirs.Session != (msg.Token{}) {
			l.join(g)
			continue
		}
		l.mu.Lock()
		away := l.room.Ask(r.Source(), g)
		l.mu.Unlock()
		if away != nil {
			l.refuse(away.Who, errNoPlace)
		}
		l.admit()
	}
}

// errNoPlace refuses who is one too many.
var errNoPlace = errors.New("msg: too many are connecting")

// refuse tells a guest why it is not connected.
func (l *lobby) refuse(g *guest, why error) { l.endpoint.refuse(g.nic, g.request, l.service, why) }

// admit lets in those for whom there is a place, and has those give way who are to; nobody when the
// listener has ended. It is called by who is of under.
func (l *lobby) admit() {
	l.mu.Lock()
	if l.ctx.Err() != nil {
		line := l.room.Clear()
		l.mu.Unlock()
		for _, v := range line {
			l.refuse(v.Who, ErrClosed)
		}
		return
	}
	for v := l.room.Enter(time.Now()); v != nil; v = l.room.Enter(time.Now()) {
		ctx, cancel := context.WithCancel(l.ctx)
		v.Who.giveWay = cancel
		l.under.Go(func() {
			defer l.leave(v)
			l.connect(ctx, v)
		})
	}
	l.mu.Unlock()
	l.crowded()
}

// crowded has those give way who had their turn while others wait, and comes back for the next.
func (l *lobby) crowded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.ctx.Err() == nil {
		v, at := l.room.GiveWay()
		g := l.hungUp()
		switch {
		case g != nil && (v == nil || g.ended.Add(handshakeGrace).Before(at)):
			v, at = nil, g.ended.Add(handshakeGrace)
		case v == nil:
			return
		}
		if wait := time.Until(at); wait > 0 {
			if l.timer == nil {
				l.timer = time.AfterFunc(wait, l.crowded)
			} else {
				l.timer.Reset(wait)
			}
			return
		}
		if v == nil {
			g.told = true
			close(g.leaves)
			continue
		}
		l.room.Told(v)
		v.Who.giveWay()
	}
}

// hungUp says who gives way to those who wait of the peers that have hung up, nil for nobody: one
// after the other, because who is accepted before can still be heard. The caller holds mu.
func (l *lobby) hungUp() *guest {
	told := func(v *crowd.Visitor[*guest]) bool { return v.Who.told }
	if !l.room.Waits() || slices.ContainsFunc(l.over, told) {
		return nil
	}
	i := l.room.First(l.over)
	if i < 0 {
		return nil
	}
	return l.over[i].Who
}

// end takes note that the connection of a guest has ended, who keeps its place until others want
// it.
func (l *lobby) end(v *crowd.Visitor[*guest]) {
	l.mu.Lock()
	v.Who.ended = time.Now()
	l.over = append(l.over, v)
	l.mu.Unlock()
	l.crowded()
}

// leave gives a place back.
func (l *lobby) leave(v *crowd.Visitor[*guest]) {
	v.Who.giveWay()
	l.mu.Lock()
	l.over = slices.DeleteFunc(l.over, func(o *crowd.Visitor[*guest]) bool { return o == v })
	l.room.Leave(v)
	l.mu.Unlock()
	l.admit()
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
// what it had sent can be received. Who has gone waits as long as nobody else wants the place.
func (l *lobby) connect(ctx context.Context, v *crowd.Visitor[*guest]) {
	g := v.Who
	c, err := l.endpoint.accept(ctx, g.nic, g.request, &g.theirs, l.service)
	if err != nil {
		return // which the peer was told
	}
	l.mu.Lock()
	l.room.Stay(v)
	l.mu.Unlock()
	select {
	case l.accepted <- c:
		return
	case <-l.ctx.Done():
		c.drop()
		return
	case <-c.done:
		l.end(v)
	}
	select {
	case l.accepted <- c:
	case <-l.ctx.Done():
		c.drop()
	case <-g.leaves:
		c.drop()
	}
}
