package queue

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/verbs"
)

// TestCQFromManyGoroutines: queues push, one application polls and waits for
// events, another resizes and moderates. Nothing is lost, out of order, or
// waited for in vain.
func TestCQFromManyGoroutines(t *testing.T) {
	const pushers, each, room = 4, 2000, 64
	wake := make(chan struct{}, 1)
	event := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	c, err := NewCQ(room, event)
	if err != nil {
		t.Fatal(err)
	}
	c.OnError(func() { t.Error("a completion was lost"); event() })
	var now, inside atomic.Int64
	var done atomic.Bool
	var wg sync.WaitGroup
	for p := range uint32(pushers) {
		wg.Go(func() {
			for i := range uint64(each) {
				for inside.Add(1) > room && !t.Failed() {
					inside.Add(-1)
					runtime.Gosched()
				}
				c.Push(&verbs.Completion{QPN: p, WRID: i, Time: clock.Time(now.Load())}, i%3 == 0)
			}
		})
	}
	wg.Go(func() { // the engine's part
		for !done.Load() {
			c.HandleDeadline(clock.Time(now.Add(1)))
			runtime.Gosched()
		}
	})
	wg.Go(func() {
		for i := 0; !done.Load(); i++ {
			c.SetModeration(uint16(i%5), clock.Time(i%3)*20)
			if err := c.Resize(room << (i % 3)); err != nil && !errors.Is(err, verbs.ErrInvalid) {
				t.Error(err)
			}
			runtime.Gosched()
		}
	})
	var next [pushers]uint64
	dst := make([]verbs.Completion, 7)
	for got := 0; got < pushers*each && !t.Failed(); {
		n, err := c.Poll(dst)
		if err != nil {
			t.Error(err)
		}
		for _, wc := range dst[:n] {
			if wc.WRID != next[wc.QPN] {
				t.Errorf("completion %d of %d, want %d", wc.WRID, wc.QPN, next[wc.QPN])
			}
			next[wc.QPN]++
		}
		got += n
		inside.Add(-int64(n))
		if n == 0 && !c.Arm(false) {
			<-wake
		}
	}
	done.Store(true)
	wg.Wait()
}
