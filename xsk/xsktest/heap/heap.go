package heap

import (
	"runtime"
	"time"

	"xroce/xsk/xsktest/timeout"
)

// patience is how long something may still be held that is about to be let go.
const patience = 5 * time.Second

// Live returns the bytes of live objects, of all goroutines, after a collection.
func Live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Grown returns how many bytes more than before are held. As long as that is more than limit it
// looks again, for some seconds: a goroutine that is late holds what it works on, and what others
// allocate while a collection marks outlives that one. What is held for good is still there then.
func Grown(before, limit int64) int64 { return grown(before, limit, timeout.Scaled(patience)) }

func grown(before, limit int64, patience time.Duration) int64 {
	deadline := time.Now().Add(patience)
	for {
		grown := Live() - before
		if grown <= limit || time.Now().After(deadline) {
			return grown
		}
		time.Sleep(10 * time.Millisecond)
	}
}
