package mem

import "sync/atomic"

// An epochCounter counts changes of keys, from 1 on; 0 is left out when it wraps.
type epochCounter struct{ n atomic.Uint32 }

// now returns the epoch in which the last change fell.
func (e *epochCounter) now() Epoch {
	if n := e.n.Load(); n != 0 {
		return Epoch(n)
	}
	return 1
}

// next begins an epoch. The caller holds Keys.mu.
func (e *epochCounter) next() Epoch {
	n := e.now() + 1
	if n == 0 {
		n = 1
	}
	e.n.Store(uint32(n))
	return n
}

// after compares in a circle: a message does not last half of it.
func (e Epoch) after(other Epoch) bool { return int32(e-other) > 0 }
