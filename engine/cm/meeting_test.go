package cm_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"xroce/engine/cm"
)

// The askers ask a Meeting for connections: some are there, and others never say anything more.
type askers struct {
	requests chan *cm.Request
	there    map[*cm.Request]int
	left     []int
}

// newAskers are those who ask in this order: 0 is nobody.
func newAskers(who ...int) *askers {
	c := &askers{requests: make(chan *cm.Request, len(who)), there: map[*cm.Request]int{}}
	for _, n := range who {
		r := new(cm.Request)
		c.requests <- r
		c.there[r] = n
	}
	return c
}

// meet meets n of them, with so many places.
func (c *askers) meet(t *testing.T, n, places int, failed func(error)) ([]int, error) {
	t.Helper()
	return c.meeting(places, failed).Meet(within(t, testTimeout), n)
}

// meeting is a Meeting with them, with so many places.
func (c *askers) meeting(places int, failed func(error)) cm.Meeting[int] {
	return cm.Meeting[int]{
		Next: func(ctx context.Context) (*cm.Request, error) {
			select {
			case r, ok := <-c.requests:
				if !ok {
					return nil, errOver
				}
				return r, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		Accept: func(ctx context.Context, r *cm.Request) (int, error) {
			if c.there[r] == 0 {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return c.there[r], nil
		},
		Leave:  func(n int) { c.left = append(c.left, n) },
		Failed: func(_ *cm.Request, err error) { failed(err) },
		Places: places, Turn: time.Millisecond,
	}
}

var errOver = errors.New("nobody asks any more")

// TestMeeting: whoever is there is met, behind any number of those who are not.
func TestMeeting(t *testing.T) {
	failed := make(chan error, 20)
	got, err := newAskers(0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8).meet(t, 2, 2,
		func(err error) { failed <- err })
	if err != nil || len(got) != 2 || got[0]+got[1] != 15 {
		t.Errorf("%v, %v", got, err)
	}
	if n := len(failed); n < 7 || !errors.Is(<-failed, context.Canceled) {
		t.Errorf("%d are told of", n)
	}
}

// TestMeetingOfEach: every client that is there is handed on, until nobody asks any more.
func TestMeetingOfEach(t *testing.T) {
	c := newAskers(0, 7, 0, 0, 8, 0, 9)
	sum, n := 0, 0
	err := c.meeting(2, func(error) {}).Each(within(t, testTimeout), func(who int) {
		if sum, n = sum+who, n+1; n == 3 {
			close(c.requests)
		}
	})
	if !errors.Is(err, errOver) || sum != 24 {
		t.Errorf("%d, %v", sum, err)
	}
}

// TestMeetingThatEnds: when nobody asks any more those who were met are left.
func TestMeetingThatEnds(t *testing.T) {
	c := newAskers(7)
	close(c.requests)
	got, err := c.meet(t, 2, 2, func(error) {})
	if !errors.Is(err, errOver) || got != nil || len(c.left) != 1 || c.left[0] != 7 {
		t.Errorf("%v, %v, left %v", got, err, c.left)
	}
}

// TestMeetingUnderFlood: strangers who ask in the names of hosts that are there, as many as have
// places and as may wait, confirm nothing, and the peer is met although its own name is among them.
func TestMeetingUnderFlood(t *testing.T) {
	s := newSiege(t)
	for range 100 {
		s.stranger.send(t, s.peer.v4, s.stranger.request(s.peer.v4))
	}
	ctx := within(t, testTimeout)
	meeting, leave := context.WithCancel(ctx)
	var met sync.WaitGroup
	clients := make(chan *cm.Conn, 1)
	met.Go(func() {
		_ = cm.Meeting[*cm.Conn]{ // it ends with the test
			Next: s.listener.Accept,
			Accept: func(ctx context.Context, r *cm.Request) (*cm.Conn, error) {
				return r.Accept(ctx, s.setup())
			},
			Leave: func(c *cm.Conn) { c.Close() },
			Turn:  time.Hour, // nobody gives way
		}.Each(meeting, func(c *cm.Conn) { clients <- c })
	})
	defer met.Wait()
	defer leave()
	waits(t, func() bool { return s.listener.Waiting() == 0 })
	c, err := s.peer.manager.Dial(ctx, s.at, s.peer.setup())
	must(t, err)
	select {
	case d := <-clients:
		d.Close()
	case <-ctx.Done():
		t.Error("nobody was met")
	}
	c.Close()
}
