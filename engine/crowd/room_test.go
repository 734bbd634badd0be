package crowd

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// host is a source that is a station of its own, by its number.
func host(n byte) Source { return at(n, n, true) }

// at is a host at a station.
func at(host, station byte, proven bool) Source {
	return Source{
		Host: Host(netip.AddrFrom4([4]byte{192, 0, 2, host})), Station: [6]byte{2, 5: station},
		Proven: proven,
	}
}

// enter lets in all for whom there is a place, and returns them.
func enter(r *Room[int], now time.Time) (in []*Visitor[int]) {
	for v := r.Enter(now); v != nil; v = r.Enter(now) {
		in = append(in, v)
	}
	return in
}

// TestRoomKeepsPlaces: however many a source sends, another one is let in at once, and what is
// turned away is of the one that sends so many.
func TestRoomKeepsPlaces(t *testing.T) {
	now := time.Unix(1000, 0)
	r := &Room[int]{Places: 8, Line: 16, Turn: time.Second}
	for n := range 1000 {
		if away := r.Ask(host(1), n); away != nil && away.Who >= n {
			t.Fatalf("%d is turned away for %d", away.Who, n)
		}
		enter(r, now)
	}
	if len(r.inside) != 6 || len(r.line) != 16 {
		t.Fatalf("%d are inside and %d wait", len(r.inside), len(r.line))
	}
	if away := r.Ask(host(2), -1); away == nil || away.Who < 0 {
		t.Errorf("%v is turned away", away)
	}
	if in := enter(r, now); len(in) != 1 || in[0].Who != -1 {
		t.Errorf("%v are let in", in)
	}
}

// TestRoomTurns: who waits for a place of its own source has one when the oldest there has had its
// turn, and does not make others give way; those who wait for any have one of whoever has most.
func TestRoomTurns(t *testing.T) {
	now := time.Unix(1000, 0)
	r := &Room[int]{Places: 4, Line: 16, Turn: time.Second}
	if v, _ := r.GiveWay(); v != nil || r.Waits() {
		t.Error("somebody is to give way to nobody")
	}
	r.Ask(host(9), 90)
	enter(r, now.Add(-time.Hour))
	for n := range 4 {
		r.Ask(host(1), n)
		enter(r, now.Add(time.Duration(n)*time.Millisecond))
	}
	v, at := r.GiveWay()
	if v == nil || v.Who != 0 || !at.Equal(now.Add(time.Second)) {
		t.Fatalf("%v is to give way at %v", v, at)
	}
	r.Told(v)
	if next, _ := r.GiveWay(); next != nil {
		t.Errorf("%d is to give way, too, to one who waits", next.Who)
	}
	r.Ask(host(1), 4)
	if next, _ := r.GiveWay(); next == nil || next.Who != 1 {
		t.Errorf("%v is next", next)
	}
	r.Clear()
	r.Ask(host(1), 3)
	r.Leave(v)
	r.Leave(v) // no place is given back twice
	if in := enter(r, now); len(in) != 1 || in[0].Who != 3 || r.Waits() {
		t.Fatalf("%v are let in", in)
	}
	for _, x := range r.inside {
		r.Stay(x)
	}
	r.Ask(host(2), 20)
	if v, _ := r.GiveWay(); v != nil {
		t.Errorf("%v is to give way, and does not have to", v)
	}
	if rest := r.Clear(); len(rest) != 1 || rest[0].Who != 20 || r.Waits() {
		t.Errorf("%v waited", rest)
	}
}

// TestRoomBehindStation: hosts without number that are all behind one router, or in the name of
// others at any station, keep out nobody who is elsewhere, neither when places are free nor when
// the line is full. Those who are not proven come after those who are.
func TestRoomBehindStation(t *testing.T) {
	for name, flood := range map[string]func(n int) Source{
		"router":      func(n int) Source { return at(byte(n), 99, true) },
		"unproven":    func(n int) Source { return at(byte(n), byte(n), false) },
		"in its name": func(n int) Source { return at(200+byte(n%3), byte(n), false) },
		"both":        func(n int) Source { return at(byte(n), 99, n%2 == 0) },
	} {
		now := time.Unix(1000, 0)
		r := &Room[int]{Places: 8, Line: 16, Turn: time.Second}
		for n := range 1000 {
			r.Ask(flood(n), n)
			enter(r, now)
		}
		if len(r.inside) != 6 || len(r.line) != 16 {
			t.Fatalf("%s: %d are inside and %d wait", name, len(r.inside), len(r.line))
		}
		for who := range 2 {
			away := r.Ask(at(byte(200+who), byte(200+who), true), -1-who)
			if away != nil && away.Who < 0 {
				t.Errorf("%s: %d is turned away", name, away.Who)
			}
			if in := enter(r, now); len(in) != 1 || in[0].Who != -1-who {
				t.Errorf("%s: %v are let in", name, in)
			}
		}
		// When all places are taken the flood gives way, whoever waits.
		if v, _ := r.GiveWay(); v == nil || v.Who < 0 {
			t.Errorf("%s: %v is to give way", name, v)
		}
		r.Ask(at(202, 202, true), -3)
		for range 6 {
			v, _ := r.GiveWay()
			if v == nil || v.Who < 0 {
				t.Fatalf("%s: %v is to give way", name, v)
			}
			r.Told(v)
			r.Leave(v)
			if in := enter(r, now); len(in) > 0 && in[0].Who == -3 {
				break
			}
		}
		if !slices.ContainsFunc(r.inside, func(v *Visitor[int]) bool { return v.Who == -3 }) {
			t.Errorf("%s: the third never got in", name)
		}
	}
}

// TestRoomTurnsAwayTheUnproven: in a full line of those who are proven there is no place for one
// who is not, and he is turned away himself.
func TestRoomTurnsAwayTheUnproven(t *testing.T) {
	r := &Room[int]{Line: 4}
	for n := range 4 {
		r.Ask(host(byte(n)), n)
	}
	if away := r.Ask(at(9, 9, false), 9); away == nil || away.Who != 9 {
		t.Errorf("%v is turned away", away)
	}
}

// TestRoomBooks: however visitors come and go, nobody is lost, no share has more places than it
// may, and what is counted of who is inside is what is inside.
func TestRoomBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Room[int]{Places: rapid.IntRange(1, 9).Draw(t, "places"), Line: 5}
		small := rapid.IntRange(0, 3)
		present, now := map[int]bool{}, time.Unix(1000, 0)
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if small.Draw(t, "leave") == 0 && len(r.inside) > 0 {
				v := r.inside[len(r.inside)/2]
				r.Leave(v)
				delete(present, v.Who)
			} else {
				present[n] = true
				away := r.Ask(at(byte(small.Draw(t, "host")), byte(small.Draw(t, "station")),
					small.Draw(t, "proven") > 0), n)
				if away != nil {
					delete(present, away.Who)
				}
			}
			enter(r, now)
			v, _ := r.GiveWay()
			if v != nil && !slices.Contains(r.inside, v) || v != nil && len(r.line) == 0 {
				t.Fatalf("%v is to give way", v)
			}
			counted := map[share]tally{}
			add := func(list []*Visitor[int], inside, waiting int) {
				for _, v := range list {
					for _, t := range v.of {
						if s := t.share; s != (share{}) {
							c := counted[s]
							counted[s] = tally{s, c.inside + inside, c.waiting + waiting}
						}
					}
				}
			}
			add(r.inside, 1, 0)
			add(r.line, 0, 1)
			if len(r.inside)+len(r.line) != len(present) {
				t.Fatalf("%d are there of %d", len(r.inside)+len(r.line), len(present))
			}
			for s, got := range r.tallies {
				if *got != counted[s] && s != (share{}) {
					t.Fatalf("%v are counted, want %v", *got, counted[s])
				}
				if got.inside > r.Places-r.Places/reserve {
					t.Fatalf("%v of %d places", *got, r.Places)
				}
			}
			if _, nobody := r.tallies[share{}]; len(r.tallies) != len(counted) && !nobody ||
				len(r.tallies) > len(counted)+1 {
				t.Fatalf("%d tallies, want %d", len(r.tallies), len(counted))
			}
			for _, v := range r.line {
				if len(r.inside) < r.Places && r.fits(v) {
					t.Fatalf("%d waits for a place that is free", v.Who)
				}
			}
		}
	})
}

// TestRoomFirst: who gives way first of some is of the station that has most places, be they of as
// many hosts, and of these who comes first in the list.
func TestRoomFirst(t *testing.T) {
	r := &Room[int]{Places: 8, Line: 16, Turn: time.Second}
	if i := r.First(nil); i != -1 {
		t.Errorf("%d of nobody", i)
	}
	r.Ask(host(9), 90)
	r.Ask(host(9), 91)
	for n := range byte(4) { // behind one router
		r.Ask(at(n+1, 200, true), int(n))
	}
	in := enter(r, time.Unix(1000, 0))
	slices.SortFunc(in, func(a, b *Visitor[int]) int { return b.Who - a.Who })
	if i := r.First(in); len(in) != 6 || i < 0 || in[i].Who != 3 {
		t.Errorf("%d of %d", i, len(in))
	}
}
