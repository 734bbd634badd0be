package tunnel

import (
	"testing"
	"time"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine/sim"
	"xroce/roce/clock"
	"xroce/xsk/xsktest"
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
		{5 * µs, 0}, // one passes, since a look was in vain
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

// TestRestInVain: where each look is in vain, as when others have the processor, there are
// fewer and fewer of them, and one that is not brings them back.
func TestRestInVain(t *testing.T) {
	var r rest
	now, looks := time1, 0
	pause := func(d clock.Time) {
		if !r.mayRest(now) {
			looks++
		}
		r.ends(now + d)
		now += 2 * time1
	}
	for range 1000 {
		pause(lookLeast)
		if r.limit > 0 {
			pause(2 * lookMost)
		}
	}
	if looks < 10 || looks > 30 {
		t.Errorf("%d looks in 1000 pauses", looks)
	}
	for range vainMost + 2 {
		pause(lookLeast)
	}
	if r.limit == 0 || r.vain != 0 {
		t.Errorf("looks for %d, passes over %d", r.limit, r.vain)
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
	rounds := 500
	if xsktest.RaceDetector {
		rounds = 50
	}
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
			// What a look-up and an agreement on keys allocate is not of a datagram.
			tt.c.refresh, tt.c.Rekey = time.Hour, time.Hour
			a, b := newLAN(t, sim.Faults{}).polledPair(TAP, tt.c)
			words := make([]byte, inner.VNetLen)
			inner.VNet{}.Put(words)
			datagram := append(words, frame(0xff, 1, 300)...)
			late := time.NewTimer(timeout.Scaled(20 * time.Second)) // for each
			defer late.Stop()
			one := func() {
				late.Reset(timeout.Scaled(20 * time.Second))
				a.queue.in <- datagram
				a.queue.wake()
				select {
				case <-b.queue.out:
				case <-late.C:
					t.Fatalf("nothing comes: %+v", b.Stats())
				}
			}
			for range 2 * udReceives { // fill the free lists
				one()
			}
			// What is said each second is counted, too: on a busy machine few datagrams go
			// between two of those.
			for try := 1; ; try++ {
				n := testing.AllocsPerRun(rounds, one)
				if n <= 1 {
					break
				}
				if try == 3 {
					t.Fatalf("%v allocations a datagram, want the copy alone", n)
				}
			}
		})
	}
}

// TestLoopHoldsLittle: to a single peer that acknowledges nothing the loop takes no more from the
// inside than it may hold, and goes on when that has gone. The connection outlives that for half a
// second: on a machine that needs longer it is lost, and another one is tried.
func TestLoopHoldsLittle(t *testing.T) {
	for try := 1; !holdsLittle(t); try++ {
		if try == 10 {
			t.Fatal("the connection was lost each time")
		}
		t.Log("the connection was lost: tried again")
	}
}

// holdsLittle is false when the connection was lost before all was seen.
func holdsLittle(t *testing.T) (lived bool) {
	lan := newLAN(t, sim.Faults{})
	a, b := lan.polledPair(TAP, Config{Format: encap.EoIB, Over: OverRC})
	defer b.end()
	defer a.end()
	lost := func() bool { p := a.Stats().Peers[0]; return !p.Up || p.Connects > 1 }
	if err := lan.network.SetFaults(sim.Faults{Drop: 1}); err != nil {
		t.Fatal(err)
	}
	const n = 60 << 10
	long := frame(0xff, 1, n)
	for range 4 * heldMost / n {
		a.send(inner.VNet{}, long)
	}
	a.await("takes nothing", func(s Stats) bool {
		return lost() || s.Peers[0].TxDatagrams >= heldMost/n
	})
	held := a.Stats().Peers[0].TxDatagrams // more when the connection is lost and that not seen yet
	if err := lan.network.SetFaults(sim.Faults{}); err != nil {
		t.Fatal(err)
	}
	for range 2 * heldMost / n {
		var came []byte
		b.await("nothing comes", func(Stats) bool {
			select {
			case came = <-b.queue.out:
				return true
			default:
				return lost()
			}
		})
		if came == nil {
			return false
		}
		if got := len(came) - inner.VNetLen; got != n {
			t.Errorf("%d bytes", got)
		}
	}
	if held > heldMost/n+1 {
		t.Errorf("%d datagrams of %d bytes are held", held, n)
	}
	return true
}
