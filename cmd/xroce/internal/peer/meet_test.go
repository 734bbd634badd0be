package peer

import (
	"context"
	"errors"
	"testing"
	"time"

	"xroce/engine/cm"
	"xroce/xsk/xsktest/timeout"
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
	return c.meeting(places, failed).Meet(within(t), n)
}

// within is a context for what must not hang.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(20*time.Second))
	t.Cleanup(cancel)
	return ctx
}

// meeting is a Meeting with them, with so many places.
func (c *askers) meeting(places int, failed func(error)) Meeting[int] {
	return Meeting[int]{
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
	err := c.meeting(2, func(error) {}).Each(within(t), func(who int) {
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
