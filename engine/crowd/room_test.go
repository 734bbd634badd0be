package crowd

import (
	"net/netip"
	"testing"
	"time"
)

// host is an address of a source, by its number.
func host(n byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, n}) }

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
	if next, _ := r.GiveWay(); next == nil || next.Who != 1 {
		t.Errorf("%v is next", next)
	}
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
