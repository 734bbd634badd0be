package peer

import (
	"context"
	"slices"
	"sync"
	"time"

	"xroce/engine/cm"
)

// A Meeting waits for clients of rdma_cm. Who asks may not be there: a request has any address as
// its source, and whoever sent it need not say anything more. So several are answered at a time,
// and those count who confirm the answer.
type Meeting[T any] struct {
	// Next waits for a request.
	Next func(context.Context) (*cm.Request, error)
	// Accept connects to who asks. It gives back what it made if that fails.
	Accept func(context.Context, *cm.Request) (T, error)
	// Leave ends a connection that is one too many.
	Leave func(T)
	// Failed, if not nil, is told who did not become a client, and why.
	Failed func(*cm.Request, error)

	// Places is how many are answered at a time, 0 for 64.
	Places int
	// Turn is how long somebody has a place that others wait for, 0 for a second.
	Turn time.Duration
}

const (
	meetingPlaces = 64
	meetingTurn   = time.Second
)

// attempts are those that are under way. They are of the goroutine that takes requests, but for
// what is at their ends.
type attempts[T any] struct {
	*Meeting[T]
	ctx     context.Context
	places  chan struct{}
	met     chan client[T]
	running sync.WaitGroup
	list    []*attempt // the oldest first
}

// A client is one who confirmed.
type client[T any] struct {
	conn  T
	order int // of the request
}

// An attempt is a request that is answered.
type attempt struct {
	begun  time.Time
	cancel context.CancelFunc
	over   chan struct{} // closed at the end
}

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
		Meeting: &m, ctx: ctx, places: make(chan struct{}, m.Places), met: make(chan client[T]),
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

// take answers requests until there are none.
func (a *attempts[T]) take() error {
	for order := 0; ; order++ {
		r, err := a.Next(a.ctx)
		if err != nil {
			return err
		}
		if !a.makeRoom() {
			_ = r.Reject(nil) // who gave up need not be told
			return a.ctx.Err()
		}
		ctx, cancel := context.WithCancel(a.ctx)
		one := &attempt{begun: time.Now(), cancel: cancel, over: make(chan struct{})}
		a.list = append(a.list, one)
		a.running.Go(func() {
			defer func() { <-a.places }()
			defer close(one.over)
			defer cancel()
			a.answer(ctx, r, order)
		})
	}
}

// makeRoom takes a place, from the oldest attempt once that has had its turn. It reports false when
// the context ended.
func (a *attempts[T]) makeRoom() bool {
	a.list = slices.DeleteFunc(a.list, (*attempt).isOver)
	var turn <-chan time.Time
	if len(a.list) > 0 {
		timer := time.NewTimer(time.Until(a.list[0].begun.Add(a.Turn)))
		defer timer.Stop()
		turn = timer.C
	}
	for {
		select {
		case a.places <- struct{}{}:
			return true
		case <-turn:
			a.list[0].cancel()
			turn = nil
		case <-a.ctx.Done():
			return false
		}
	}
}

func (t *attempt) isOver() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

// answer answers a request.
func (a *attempts[T]) answer(ctx context.Context, r *cm.Request, order int) {
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
