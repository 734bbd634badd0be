package tunnel

import (
	"testing"
	"time"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine/sim"
	"xroce/roce/clock"
	"xroce/xsk/xsktest/timeout"
)

// TestRest: behind a short pause the loop looks for work for a while, behind a long one it sleeps
// at once; and one that was told how long looks for that long.
func TestRest(t *testing.T) {
	const µs = clock.Time(time.Microsecond)
	var r rest
	if !r.mayRest(5 * µs) {
		t.Error("a loop that never worked does not sleep")
	}
	r.ends(100 * µs) // a pause of 95 µs
	for now := 200 * µs; now < 200*µs+spinMost; now += 50 * µs {
		if r.mayRest(now) {
			t.Errorf("sleeps %d ns behind work, after a short pause", now-200*µs)
		}
	}
	if !r.mayRest(200*µs + spinMost) {
		t.Error("does not sleep after all of its time")
	}
	r.ends(200*µs + 2*spinMost) // a long one
	if !r.mayRest(time1) {
		t.Error("does not sleep behind a long pause")
	}
	r.ends(time1 + spinMost) // the longest that is short
	r.ends(time1 + 9*spinMost)
	if r.mayRest(time1 + 9*spinMost) {
		t.Error("work behind work is taken for a pause")
	}
	told := rest{spin: 10 * µs, limit: 10 * µs}
	if told.mayRest(time1) || told.mayRest(time1+9*µs) || !told.mayRest(time1+10*µs) {
		t.Error("does not look for as long as it was told")
	}
	told.ends(time1 + 20*µs)
	if told.mayRest(time1+30*µs) || !told.mayRest(time1+40*µs) {
		t.Error("forgets how long it was told to look")
	}
}

// time1 is some time later.
const time1 = clock.Time(time.Second)

// TestLoopDoesNotAllocate counts the allocations of datagrams that go through both loops. The
// inside that takes them makes a copy of each.
func TestLoopDoesNotAllocate(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    Config
	}{
		{"ud", Config{Format: encap.EoIB}},
		{"ud, key", Config{Format: encap.EoIB, Key: testKey("one")}},
		{"rc", Config{Format: encap.EoIB, Over: OverRC}},
		{"native", Config{Format: encap.Raw, Over: OverNative}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := newLAN(t, sim.Faults{}).polledPair(TAP, tt.c)
			words := make([]byte, inner.VNetLen)
			inner.VNet{}.Put(words)
			datagram := append(words, frame(0xff, 1, 300)...)
			late := time.After(timeout.Scaled(20 * time.Second))
			one := func() {
				a.queue.in <- datagram
				(*a.queue.woken.Load())()
				select {
				case <-b.queue.out:
				case <-late:
					t.Fatalf("nothing comes: %+v", b.Stats())
				}
			}
			for range 2 * udReceives { // fill the free lists
				one()
			}
			if n := testing.AllocsPerRun(500, one); n > 1 {
				t.Errorf("%v allocations a datagram, want the copy alone", n)
			}
		})
	}
}
