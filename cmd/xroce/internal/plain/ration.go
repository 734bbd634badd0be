package plain

import (
	"sync"
	"time"
)

// A Ration lets a number of lines through in each span of time, and counts the others: what
// anybody can have logged, nobody may fill a disk with. It is safe for concurrent use.
type Ration struct {
	Lines int
	Span  time.Duration

	mu    sync.Mutex
	since time.Time
	used  int
	left  int // that were not let through
}

// Spend reports whether one more line is let through, and how many were not before it.
func (r *Ration) Spend(now time.Time) (ok bool, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= r.Span {
		r.since, r.used = now, 0
	}
	if r.used == r.Lines {
		r.left++
		return false, 0
	}
	r.used++
	left, r.left = r.left, 0
	return true, left
}

// Left returns how many lines were not let through since it was told last.
func (r *Ration) Left() (left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left, r.left = r.left, 0
	return left
}
