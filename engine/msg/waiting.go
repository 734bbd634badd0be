package msg

import (
	"context"
	"sync"
	"sync/atomic"
)

// A waiting is how a message or a receive tells who waits that it is complete. It is used again
// and again, and allocates once.
type waiting struct {
	over atomic.Bool

	mu    sync.Mutex
	busy  bool          // it was begun and has not ended
	token chan struct{} // one place: a value while it is over, which waiters hand on
	done  chan struct{} // of Done, nil until somebody asks
}

// begin reports whether there is something new to wait for: not while the last is under way.
func (w *waiting) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy {
		return false
	}
	w.busy, w.done = true, nil
	w.over.Store(false)
	if w.token == nil {
		w.token = make(chan struct{}, 1)
	}
	select {
	case <-w.token:
	default:
	}
	return true
}

// forgo ends what was begun and did not come about.
func (w *waiting) forgo() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
}

// end tells all who wait, and who will.
func (w *waiting) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	w.over.Store(true)
	if w.done != nil {
		close(w.done)
	}
	w.handOn()
}

// handOn lets one more who waits look.
func (w *waiting) handOn() {
	select {
	case w.token <- struct{}{}:
	default:
	}
}

// channel returns one that is closed at the end.
func (w *waiting) channel() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = make(chan struct{})
		if !w.busy {
			close(w.done)
		}
	}
	return w.done
}

// sleep waits for the end, or returns the error of the context.
func (w *waiting) sleep(ctx context.Context) error {
	for !w.over.Load() {
		select {
		case <-w.token:
		case <-ctx.Done():
			if w.over.Load() {
				return nil
			}
			return ctx.Err()
		}
	}
	w.handOn()
	return nil
}
