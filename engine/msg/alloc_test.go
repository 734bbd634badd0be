package msg_test

import "testing"

// TestRendezvousAllocatesForKeys: a message without a slot has a key made at either end, and
// nothing else is allocated for it. What a key takes is package engine's and roce/mem's.
func TestRendezvousAllocatesForKeys(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	const keys, aKey = 2, 6
	l := newLoop(t)
	e, ca, cb := l.messages(t)
	ctx := within(t)
	u := newBurst(e, ca, cb, 1, 300<<10)
	run := func() { must(t, u.run(ctx)) }
	for range 100 {
		run()
	}
	if n := testing.AllocsPerRun(200, run); n > keys*aKey {
		t.Errorf("%v allocations a message", n)
	}
}
