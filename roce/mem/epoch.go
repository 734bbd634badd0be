package mem

import "sync/atomic"

// An epochCounter counts changes of keys.
type epochCounter struct{ changes atomic.Uint64 }

// now returns the epoch that the last change began.
func (e *epochCounter) now() Epoch { return Epoch(e.changes.Load()) + 1 }

// next begins an epoch. The caller holds Keys.mu.
func (e *epochCounter) next() { e.changes.Add(1) }
