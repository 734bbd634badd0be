package crowd

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// A Room has places for those who are being answered, and a line of those who wait for one. Nobody
// knows whether they will ever be ready. No host, no station, and not those together who are not
// proven may have all places, so who comes from elsewhere need not wait for them; and who has had a
// place for his turn gives way to those who wait. It is not safe for concurrent use.
type Room[G any] struct {
	Places int           // at once
	Line   int           // how many wait at most
	Turn   time.Duration // how long somebody has a place that others wait for

	inside, line []*Visitor[G] // the one that came first is first
	tallies      map[share]*tally
}

// A tally is how many of a share are there. Of the share of nobody it stays zero.
type tally struct {
	share           share
	inside, waiting int
}

// A Visitor is one who came to a Room.
type Visitor[G any] struct {
	Who    G
	proven bool
	of     [3]*tally // of his shares
	since  time.Time // when he entered
	leaves bool      // he was told to give way
	stays  bool      // he does not give way
}

// reserve is the part of the places that one share leaves to others.
const reserve = 4

// The tallies of a visitor.
const (
	ofHost = iota
	ofStation
	ofUnproven
)

// Ask takes somebody into the line. Where that is full somebody is turned away, maybe he himself:
// of those who are not proven if there are any, of the station and then of the host that has most
// in the line, who came first. It returns him, else nil.
func (r *Room[G]) Ask(from Source, who G) (away *Visitor[G]) {
	v := &Visitor[G]{Who: who, proven: from.Proven}
	for i, s := range from.shares() {
		v.of[i] = r.tally(s)
	}
	r.line = append(r.line, v)
	v.count(func(t *tally) { t.waiting++ })
	if len(r.line) <= max(r.Line, 1) {
		return nil
	}
	i := least(r.line, func(t *tally) int { return t.waiting },
		func(*Visitor[G]) bool { return true })
	return r.leaveLine(i)
}

// tally is that of a share.
func (r *Room[G]) tally(s share) *tally {
	t := r.tallies[s]
	if t == nil {
		if r.tallies == nil {
			r.tallies = map[share]*tally{}
		}
		t = &tally{share: s}
		r.tallies[s] = t
	}
	return t
}

// count changes the tallies of a visitor.
func (v *Visitor[G]) count(change func(*tally)) {
	for _, t := range v.of {
		if t.share != (share{}) {
			change(t)
		}
	}
}

// forget forgets the tallies of a visitor who has left, unless others are counted there.
func (r *Room[G]) forget(v *Visitor[G]) {
	for _, t := range v.of {
		if t.inside == 0 && t.waiting == 0 {
			delete(r.tallies, t.share)
		}
	}
}

// leaveLine takes a visitor out of the line.
func (r *Room[G]) leaveLine(i int) *Visitor[G] {
	v := r.line[i]
	r.line = slices.Delete(r.line, i, i+1)
	v.count(func(t *tally) { t.waiting-- })
	r.forget(v)
	return v
}

// least is the visitor of whom least is known, and of those the first one of the station and then
// of the host that has most; -1 for nobody.
func least[G any](
	list []*Visitor[G], many func(*tally) int, may func(*Visitor[G]) bool,
) (worst int) {
	worst = -1
	for i, v := range list {
		if may(v) && (worst < 0 || v.order(list[worst], many) < 0) {
			worst = i
		}
	}
	return worst
}

// order compares visitors: those who are not proven come first, then who is of a station that has
// more, then of a host that has more.
func (v *Visitor[G]) order(other *Visitor[G], many func(*tally) int) int {
	switch {
	case !v.proven && other.proven:
		return -1
	case v.proven && !other.proven:
		return 1
	}
	return cmp.Or(
		cmp.Compare(many(other.of[ofStation]), many(v.of[ofStation])),
		cmp.Compare(many(other.of[ofHost]), many(v.of[ofHost])),
	)
}

// in reports whether a visitor is in a share, which may be what several have in common.
func (v *Visitor[G]) in(s share) bool {
	return (s.host == (netip.Prefix{}) || s.host == v.of[ofHost].share.host) &&
		(s.station == ([6]byte{}) || s.station == v.of[ofStation].share.station) &&
		(s.proof == 0 || (s.proof == proven) == v.proven)
}

func inside(t *tally) int { return t.inside }

// Enter gives a place to one in the line for whom there is one, and returns him, or nil: of those
// who are proven if there are any, of the station and then of the host that has fewest places, who
// came first.
func (r *Room[G]) Enter(now time.Time) *Visitor[G] {
	if len(r.inside) >= r.Places {
		return nil
	}
	best := -1
	for i, v := range r.line {
		if r.fits(v) && (best < 0 || v.order(r.line[best], inside) > 0) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	v := r.line[best]
	v.count(func(t *tally) { t.inside++ })
	r.leaveLine(best)
	r.inside, v.since = append(r.inside, v), now
	return v
}

// fits reports whether none of somebody's shares has as many places as it may.
func (r *Room[G]) fits(v *Visitor[G]) bool {
	most := r.most()
	return v.of[ofHost].inside < most && v.of[ofStation].inside < most &&
		v.of[ofUnproven].inside < most
}

// most is how many places a share may have.
func (r *Room[G]) most() int { return r.Places - r.Places/reserve }

// full is what those of somebody's shares have in common that have as many places as they may.
func (r *Room[G]) full(v *Visitor[G]) (full share) {
	for _, t := range v.of {
		if t.inside >= r.most() {
			full = full.and(t.share)
		}
	}
	return full
}

// Waits reports whether anybody waits.
func (r *Room[G]) Waits() bool { return len(r.line) > 0 }

// GiveWay says who is to give way, and when, to those who wait; nil for nobody. Of a share that
// has as many places as it may only its own do, else anybody, chosen as in Ask. He is asked for
// again until Told; it is also nobody while as many as wait were told and have not left.
func (r *Room[G]) GiveWay() (v *Visitor[G], at time.Time) {
	leaving := 0
	for _, x := range r.inside {
		if x.leaves {
			leaving++
		}
	}
	if leaving >= len(r.line) {
		return nil, at
	}
	var full []share // whose own give way
	for i, x := range r.line {
		if i > 0 && x.of == r.line[i-1].of { // as in the line of a flood
			continue
		}
		if s := r.full(x); !slices.Contains(full, s) {
			full = append(full, s)
		}
	}
	i := least(r.inside, inside, func(x *Visitor[G]) bool {
		return !x.leaves && !x.stays &&
			slices.ContainsFunc(full, x.in)
	})
	if i < 0 {
		return nil, at
	}
	return r.inside[i], r.inside[i].since.Add(r.Turn)
}

// First says who of some that have a place would be the first to give way, -1 when there are none.
func (r *Room[G]) First(of []*Visitor[G]) int {
	return least(of, inside, func(*Visitor[G]) bool { return true })
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
	v.count(func(t *tally) { t.inside-- })
	r.forget(v)
}

// Clear empties the line, and returns who was there.
func (r *Room[G]) Clear() (line []*Visitor[G]) {
	for len(r.line) > 0 {
		line = append(line, r.leaveLine(0))
	}
	return line
}
