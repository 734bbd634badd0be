package main

import "time"

// A ration lets a number of lines through in each span of time, and counts the others: what
// anybody can have logged, nobody may fill a disk with.
type ration struct {
	lines int
	span  time.Duration

	since time.Time
	used  int
	left  int // that were not let through
}

// spend reports whether one more line is let through, and how many were not before it.
func (r *ration) spend(now time.Time) (ok bool, left int) {
	if now.Sub(r.since) >= r.span {
		r.since, r.used = now, 0
	}
	if r.used == r.lines {
		r.left++
		return false, 0
	}
	r.used++
	return true, r.take()
}

// take returns how many lines were not let through since it was asked last.
func (r *ration) take() (left int) {
	left, r.left = r.left, 0
	return left
}
