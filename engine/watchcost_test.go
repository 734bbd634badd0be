package engine

import "testing"

// shows is the question that each packet is asked when it passes, as a call of its own, so that no
// compiler asks it once for all.
//
//go:noinline
func shows(q *queue) bool { return q.watch != nil }

// BenchmarkUnwatched is at most what a capture costs a packet while there is none.
func BenchmarkUnwatched(b *testing.B) {
	q, seen := &queue{}, 0
	for b.Loop() {
		if shows(q) {
			seen++
		}
	}
	if seen > 0 {
		b.Error("nobody watches")
	}
}
