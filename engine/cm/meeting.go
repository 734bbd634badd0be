package cm

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"xroce/engine/crowd"
	"xroce/roce/cm"
)

// A Meeting accepts connections of clients that nobody knows. Who asks may not be there: a request
// has any address as its source, and whoever sent it need not say anything more. So several are
// answered at a time, not all of one host or station, and those count who confirm the answer. Its
// fields are not changed while it goes on.
type Meeting[T any] struct {
	// Next waits for a request, as Listener.Accept does.
	Next func(context.Context) (*Request, error)
	// Accept connects to who asks, as Request.Accept does, on a queue pair of its own. It gives
	// back what it made if that fails. It is called by several goroutines.
	Accept func(context.Context, *Request) (T, error)
	// Leave ends a connection that is one too many.
	Leave func(T)
	// Failed, if not nil, is told who did not become a client, and why, by the same goroutines.
	Failed func(*Request, error)

	// Places is how many are answered at a time, 0 for 64.
	Places int
	// Turn is how long somebody has a place that others wait for, 0 for a second.
	Turn time.Duration
}

const (
	meetingPlaces = 64
	meetingTurn   = time.Second
)

// meetingLine is how many wait for a place, beside those that wait at the connection manager.
const meetingLine = 256

// attempts are those that are under way. They are of the goroutine that takes requests, but for
// what is at their ends.
type attempts[T any] struct {
	*Meeting[T]
	ctx     context.Context
	room    crowd.Room[*attempt]
	left    chan *crowd.Visitor[*attempt]
	met     chan client[T]
	running sync.WaitGroup
}

// A client is one who confirmed.
type client[T any] struct {
	conn  T
	order int // of the request
}

// An attempt is a request that is answered, or waits for that.
type attempt struct {
	request *Request
	order   int
	cancel  context.CancelCauseFunc
}

// errTurn is why an attempt ends that took longer than its turn.
var errTurn = errors.New("it takes long, and others wait")

// Meet waits for n clients, and returns them in the order in which they asked. The error is that
// of Next; then there are none.
func (m Meeting[T]) Meet(ctx context.Context, n int) (clients []T, err error) {
	var met []client[T]
	err = m.each(ctx, func(c client[T]) (more bool) {
		met = append(met, c)
		return len(met) < n
	})
	slices.SortFunc(met, func(a, b client[T]) int { return a.order - b.order })
	for _, c := range met {
		if err != nil {
			m.Leave(c.conn)
			continue
		}
		clients = append(clients, c.conn)
	}
	return clients, err
}

// Each hands on each client that comes, to a function that must not wait, until Next fails, whose
// error it returns.
func (m Meeting[T]) Each(ctx context.Context, do func(T)) error {
	return m.each(ctx, func(c client[T]) (more bool) {
		do(c.conn)
		return true
	})
}

// each hands on each client until there is to be no more.
func (m Meeting[T]) each(ctx context.Context, do func(client[T]) (more bool)) error {
	if m.Places == 0 {
		m.Places = meetingPlaces
	}
	if m.Turn == 0 {
		m.Turn = meetingTurn
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &attempts[T]{
		Meeting: &m, ctx: ctx, met: make(chan client[T]),
		room: crowd.Room[*attempt]{Places: m.Places, Line: meetingLine, Turn: m.Turn},
		left: make(chan *crowd.Visitor[*attempt]),
	}
	defer a.running.Wait()
	defer cancel()
	ended := make(chan error, 1)
	a.running.Go(func() { ended <- a.take() })
	for {
		select {
		case c := <-a.met:
			if !do(c) {
				return nil
			}
		case err := <-ended:
			return err
		}
	}
}

// take answers requests until there are none. It never waits for a place: who waits for one keeps
// nobody from asking.
func (a *attempts[T]) take() error {
	requests, over := make(chan *Request), make(chan error, 1)
	a.running.Go(func() { over <- a.forward(requests) })
	defer func() {
		for _, v := range a.room.Clear() {
			turnAway(v)
		}
	}()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for order := 0; ; {
		for v := a.room.Enter(time.Now()); v != nil; v = a.room.Enter(time.Now()) {
			a.begin(v)
		}
		if a.room.Waits() {
			a.giveWay(timer)
		}
		select {
		case r := <-requests:
			turnAway(a.room.Ask(r.Source(), &attempt{request: r, order: order}))
			order++
		case v := <-a.left:
			a.room.Leave(v)
		case <-timer.C:
		case err := <-over:
			return err
		case <-a.ctx.Done():
			return a.ctx.Err()
		}
	}
}

// forward hands on requests until there are none.
func (a *attempts[T]) forward(to chan<- *Request) error {
	for {
		r, err := a.Next(a.ctx)
		if err != nil {
			return err
		}
		select {
		case to <- r:
		case <-a.ctx.Done():
			_ = r.Reject(nil) // who gave up need not be told
			return a.ctx.Err()
		}
	}
}

// turnAway refuses who waits for a place, if it is anybody.
func turnAway(v *crowd.Visitor[*attempt]) {
	if v != nil {
		_ = v.Who.request.RejectFor(cm.ReasonNoResources, nil, nil) // as above
	}
}

// giveWay ends the attempt that is to give way, or sets the timer for when it is.
func (a *attempts[T]) giveWay(timer *time.Timer) {
	for {
		v, at := a.room.GiveWay()
		if v == nil {
			return
		}
		if wait := time.Until(at); wait > 0 {
			timer.Reset(wait)
			return
		}
		a.room.Told(v)
		v.Who.cancel(errTurn)
	}
}

// begin begins to answer a request.
func (a *attempts[T]) begin(v *crowd.Visitor[*attempt]) {
	ctx, cancel := context.WithCancelCause(a.ctx)
	v.Who.cancel = cancel
	a.running.Go(func() {
		a.answer(ctx, v.Who.request, v.Who.order)
		cancel(nil)
		select {
		case a.left <- v:
		case <-a.ctx.Done():
		}
	})
}

// answer answers a request.
func (a *attempts[T]) answer(ctx context.Context, r *Request, order int) {
	c, err := a.Accept(ctx, r)
	if err != nil {
		if a.Failed != nil && a.ctx.Err() == nil {
			a.Failed(r, err)
		}
		return
	}
	select {
	case a.met <- client[T]{c, order}:
	case <-a.ctx.Done():
		a.Leave(c)
	}
}
