package msg

import (
	"context"
	"sync"
	"sync/atomic"
)

// A waiting is how a message or a receive tells who waits that it is complete. It is used again
// and again. While nobody sleeps and nobody has asked for Done, to begin and to end is one change
// of a word each: most messages are over before anybody looks.
type waiting struct {
	state atomic.Uint32

	mu    sync.Mutex
	token chan struct{} // one place: a value for one who sleeps to look, which is handed on
	done  chan struct{} // of Done, nil until somebody asks
	told  bool          // done is closed
}

// The states of a waiting. Watched is left under mu alone.
const (
	waitNothing uint32 = iota // it was not begun, or came to nothing
	waitBusy                  // it is under way
	waitWatched               // and somebody is to be told of the end
	waitOver
)

// begin reports whether there is something new to wait for: not while the last is under way.
func (w *waiting) begin() bool {
	for {
		state := w.state.Load()
		if state == waitBusy || state == waitWatched {
			return false
		}
		if w.state.CompareAndSwap(state, waitBusy) {
			return true
		}
	}
}

// forgo ends what was begun and did not come about.
func (w *waiting) forgo() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Store(waitNothing)
}

// over reports whether it has ended.
func (w *waiting) over() bool { return w.state.Load() == waitOver }

// end tells all who wait, and who will.
func (w *waiting) end() {
	if w.state.CompareAndSwap(waitBusy, waitOver) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Store(waitOver)
	if w.done != nil && !w.told {
		w.told = true
		close(w.done)
	}
	w.handOn()
}

// handOn lets one more who sleeps look. The caller holds mu.
func (w *waiting) handOn() {
	if w.token == nil {
		return
	}
	select {
	case w.token <- struct{}{}:
	default:
	}
}

// watch has the end told to those who do not look. The caller holds mu.
func (w *waiting) watch() { w.state.CompareAndSwap(waitBusy, waitWatched) }

// channel returns one that is closed at the end.
func (w *waiting) channel() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watch()
	coming := w.state.Load() == waitWatched
	if w.done == nil || coming && w.told {
		w.done, w.told = make(chan struct{}), false
	}
	if !coming && !w.told {
		w.told = true
		close(w.done)
	}
	return w.done
}

// sleep waits for the end, or returns the error of the context.
func (w *waiting) sleep(ctx context.Context) error {
	if w.over() {
		return nil
	}
	for token := w.next(); token != nil; token = w.next() {
		select {
		case <-token:
		case <-ctx.Done():
			if w.over() {
				return nil
			}
			return ctx.Err()
		}
	}
	return nil
}

// next returns where somebody who sleeps is told to look again, nil when it is over: others who
// sleep are told then.
func (w *waiting) next() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.token == nil {
		w.token = make(chan struct{}, 1)
	}
	if w.watch(); w.over() {
		w.handOn()
		return nil
	}
	return w.token
}
