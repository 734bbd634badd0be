package crowd

import (
	"net/netip"
	"slices"
	"time"
)

// A Room has places for those who are being answered, and a line of those who wait for one. Nobody
// knows whether they will ever be ready. No source may have all places, so who comes from another
// one need not wait for it; and who has had a place for his turn gives way to those who wait. It is
// not safe for concurrent use.
type Room[G any] struct {
	Places int           // at once
	Line   int           // how many wait at most
	Turn   time.Duration // how long somebody has a place that others wait for

	inside, line []*Visitor[G] // the one that came first is first
	of           map[netip.Prefix]int
}

// A Visitor is one who came to a Room.
type Visitor[G any] struct {
	Who    G
	source netip.Prefix
	since  time.Time // when he entered
	leaves bool      // he was told to give way
	stays  bool      // he does not give way
}

// reserve is the part of the places that one source leaves to others.
const reserve = 4

// Ask takes somebody at an address into the line. Where that is full somebody is turned away, who
// came first of his source, if that has one in the line, or of the source that has most there: it
// returns him, else nil.
func (r *Room[G]) Ask(from netip.Addr, who G) (away *Visitor[G]) {
	v := &Visitor[G]{Who: who, source: Host(from)}
	if len(r.line) >= max(r.Line, 1) {
		i := slices.IndexFunc(r.line, func(x *Visitor[G]) bool { return x.source == v.source })
		if i < 0 {
			i = GivesWay(r.line, func(x *Visitor[G]) (netip.Prefix, bool) { return x.source, true })
		}
		away = r.line[i]
		r.line = slices.Delete(r.line, i, i+1)
	}
	r.line = append(r.line, v)
	return away
}

// Enter gives a place to who is the first in the line of those for whom there is one, and returns
// him, or nil.
func (r *Room[G]) Enter(now time.Time) *Visitor[G] {
	if len(r.inside) >= r.Places {
		return nil
	}
	i := slices.IndexFunc(r.line, r.fits)
	if i < 0 {
		return nil
	}
	v := r.line[i]
	r.line = slices.Delete(r.line, i, i+1)
	r.inside, v.since = append(r.inside, v), now
	if r.of == nil {
		r.of = map[netip.Prefix]int{}
	}
	r.of[v.source]++
	return v
}

// fits reports whether somebody's source does not have as many places as it may.
func (r *Room[G]) fits(v *Visitor[G]) bool { return r.of[v.source] < r.Places-r.Places/reserve }

// Waits reports whether anybody waits.
func (r *Room[G]) Waits() bool { return len(r.line) > 0 }

// GiveWay says who is to give way, and when, to those who wait; nil for nobody. Of a source that
// has as many places as it may only its own do, else somebody of the source that has most. He is
// asked for again until Told.
func (r *Room[G]) GiveWay() (v *Visitor[G], at time.Time) {
	if len(r.line) == 0 {
		return nil, at
	}
	full := map[netip.Prefix]bool{} // whose own give way
	for _, x := range r.line {
		if r.fits(x) {
			full = nil // anybody's
			break
		}
		full[x.source] = true
	}
	i := GivesWay(r.inside, func(x *Visitor[G]) (netip.Prefix, bool) {
		return x.source, !x.leaves && !x.stays && (full == nil || full[x.source])
	})
	if i < 0 {
		return nil, at
	}
	return r.inside[i], r.inside[i].since.Add(r.Turn)
}

// Told takes note that a visitor was told to give way.
func (r *Room[G]) Told(v *Visitor[G]) { v.leaves = true }

// Stay takes note that a visitor does not give way any more.
func (r *Room[G]) Stay(v *Visitor[G]) { v.stays = true }

// Leave takes a visitor's place back.
func (r *Room[G]) Leave(v *Visitor[G]) {
	i := slices.Index(r.inside, v)
	if i < 0 {
		return
	}
	r.inside = slices.Delete(r.inside, i, i+1)
	if r.of[v.source]--; r.of[v.source] == 0 {
		delete(r.of, v.source)
	}
}

// Clear empties the line, and returns who was there.
func (r *Room[G]) Clear() []*Visitor[G] {
	line := r.line
	r.line = nil
	return line
}
