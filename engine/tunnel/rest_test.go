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

// TestRest: a loop looks for work as long as lately paid, as it learns from the pauses: not at all
// at first and behind a long pause, twice as long behind one that was just too long, never longer
// than the most, and no longer behind one that ended while it looked.
func TestRest(t *testing.T) {
	const µs = clock.Time(time.Microsecond)
	var r rest
	now := time1
	for i, tt := range []struct{ pause, looks clock.Time }{
		{5 * µs, lookLeast},
		{5 * µs, lookLeast},
		{lookLeast, lookLeast},
		{lookLeast + 1, 2 * lookLeast},
		{lookLeast, 2 * lookLeast},
		{150 * µs, 4 * lookLeast},
		{150 * µs, 8 * lookLeast},
		{lookMost, lookMost},
		{lookMost, lookMost},
		{lookMost + 1, 0},
		{time1, 0},
		{lookMost, lookLeast},
	} {
		if looked := r.limit; r.mayRest(now) != (looked == 0) {
			t.Errorf("pause %d: sleeps at once, or not, with %d to look", i, looked)
		} else if looked > 0 && (r.mayRest(now+looked-1) || !r.mayRest(now+looked)) {
			t.Errorf("pause %d: does not look for %d", i, looked)
		}
		r.ends(now + tt.pause)
		if r.limit != tt.looks {
			t.Errorf("pause %d, of %d: looks for %d, want %d", i, tt.pause, r.limit, tt.looks)
		}
		r.ends(now + 9*time1) // work behind work is no pause
		now += 10 * time1
	}
}

// TestRestAlways: one that was told how long looks for that long.
func TestRestAlways(t *testing.T) {
	const µs = clock.Time(time.Microsecond)
	told := rest{always: 10 * µs}
	for range 2 {
		if told.mayRest(time1) || told.mayRest(time1+9*µs) || !told.mayRest(time1+10*µs) {
			t.Error("does not look for as long as it was told")
		}
		told.ends(2 * time1)
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
