package sched

import (
	"math/bits"

	"xroce/roce/clock"
)

// The shape of a wheel. A time is cut into a tick and, the tick, into digits of
// six bits, one for each level:
//
//	level   8      7      6      5      4      3      2      1      0
//	slot   2^58   2^52   2^46   2^40   2^34   2^28   2^22   2^16   2^10 ns
//	      9 y     52 d   20 h   18 m   17 s  268 ms   4 ms  66 us   1 us
const (
	tickBits    = 10
	digitBits   = 6
	wheelSlots  = 1 << digitBits
	wheelLevels = (63 - tickBits + digitBits - 1) / digitBits // for any clock.Time
	dueList     = wheelLevels * wheelSlots                    // behind the last slot
)

// A TimerNode is what a Wheel holds. It is embedded in an object of type T, and made
// ready by Init.
type TimerNode[T any] struct {
	owner      *T
	slot       uint16 // the list that it is on plus one, 0 for none
	at         clock.Time
	next, prev *TimerNode[T]
}

// Init says in which object the node is.
func (n *TimerNode[T]) Init(owner *T) { n.owner = owner }

// A Wheel is a hierarchical timer wheel (Varghese and Lauck, 1987): it holds nodes by
// the time at which their owners next want to be looked at, each at most once. All it
// does costs the same however many it holds. The zero value is an empty one that
// stands at time 0.
//
// It is lazy: when a deadline moves later, as that of a queue pair does with every
// acknowledgement, the node stays where it is, is looked at too early, and finds its
// new place then.
//
// A node is filed under the highest digit in which its tick differs from the tick
// at which the wheel stands. So all of a level comes before all of the next,
// and the first used slot of the lowest used level has the soonest deadline.
// When the wheel reaches a slot, the nodes in it are filed again, further down. In
// its last tick a node waits in level 0 for its very nanosecond: none is served
// early, and none late by the wheel's doing.
type Wheel[T any] struct {
	tick   uint64              // where the wheel stands
	levels uint64              // bit set: of the levels in use
	used   [wheelLevels]uint64 // bit sets: of their slots in use
	// first begins the list of each slot, and of those whose time has come.
	first [dueList + 1]*TimerNode[T]
	// soonest is a bound of the deadlines in each list that is not empty, and
	// exact when none was removed from it.
	soonest [dueList + 1]clock.Time
}

// Arm puts a node in, or moves it forward, to be looked at by time at.
func (w *Wheel[T]) Arm(n *TimerNode[T], at clock.Time) {
	if n.slot != 0 {
		if at >= n.at {
			return
		}
		w.Remove(n)
	}
	n.at = at
	w.file(n)
}

// Next returns a time at which a node may want to be looked at, never later than
// the earliest one armed, false when none is in. When Pop has been called at that
// time until it returned nil, the next one is later.
func (w *Wheel[T]) Next() (clock.Time, bool) {
	if w.first[dueList] != nil {
		return w.soonest[dueList], true
	}
	if w.levels == 0 {
		return 0, false
	}
	_, slot := w.earliest()
	return w.soonest[slot], true
}

// Pop takes out a node whose time has come and returns its owner, nil when there is
// none.
func (w *Wheel[T]) Pop(now clock.Time) *T {
	if w.first[dueList] == nil && w.levels != 0 {
		w.advance(now)
	}
	n := w.first[dueList]
	if n == nil {
		return nil
	}
	w.Remove(n)
	return n.owner
}

// Remove takes a node out, if it is in.
func (w *Wheel[T]) Remove(n *TimerNode[T]) {
	if n.slot == 0 {
		return
	}
	slot := int(n.slot) - 1
	if n.prev == nil {
		w.first[slot] = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	}
	if w.first[slot] == nil {
		w.empty(slot)
	}
	n.next, n.prev, n.slot = nil, nil, 0
}

// file puts a node that is in no list into the one of its deadline.
func (w *Wheel[T]) file(n *TimerNode[T]) {
	// One that is late belongs to the tick that it is.
	tick := max(uint64(n.at)>>tickBits, w.tick)
	level := 0
	if differ := tick ^ w.tick; differ != 0 {
		level = (bits.Len64(differ) - 1) / digitBits
	}
	digit := int(tick>>(level*digitBits)) % wheelSlots
	w.levels |= 1 << level
	w.used[level] |= 1 << digit
	w.link(n, level*wheelSlots+digit)
}

// link puts a node at the front of a list.
func (w *Wheel[T]) link(n *TimerNode[T], slot int) {
	second := w.first[slot]
	if second == nil {
		w.soonest[slot] = n.at
	} else {
		second.prev = n
		w.soonest[slot] = min(w.soonest[slot], n.at)
	}
	w.first[slot] = n
	n.next, n.prev, n.slot = second, nil, uint16(slot+1)
}

// empty notes that a list has become empty.
func (w *Wheel[T]) empty(slot int) {
	if slot == dueList {
		return
	}
	level, digit := slot/wheelSlots, slot%wheelSlots
	if w.used[level] &^= 1 << digit; w.used[level] == 0 {
		w.levels &^= 1 << level
	}
}

// earliest returns the slot of the soonest deadline and the tick at which it
// begins. The wheel must not be empty.
func (w *Wheel[T]) earliest() (begin uint64, slot int) {
	level := bits.TrailingZeros64(w.levels)
	digit := bits.TrailingZeros64(w.used[level])
	above := w.tick >> ((level + 1) * digitBits)
	return (above<<digitBits | uint64(digit)) << (level * digitBits), level*wheelSlots + digit
}

// advance brings the wheel to the tick of now. It files the nodes of all slots that
// began by then again, those whose time has come into the list of these.
func (w *Wheel[T]) advance(now clock.Time) {
	tick := uint64(now) >> tickBits
	var moving *TimerNode[T]
	for w.levels != 0 {
		begin, slot := w.earliest()
		// In the slot of this very tick they wait for their nanosecond.
		if begin > tick || (slot < wheelSlots && w.soonest[slot] > now) {
			break
		}
		moving = w.take(slot, moving)
	}
	w.tick = max(w.tick, tick)
	for moving != nil {
		n := moving
		moving = n.next
		if n.at <= now {
			w.link(n, dueList)
		} else {
			w.file(n)
		}
	}
}

// take empties a slot onto a chain, which is linked by next only.
func (w *Wheel[T]) take(slot int, chain *TimerNode[T]) *TimerNode[T] {
	for n := w.first[slot]; n != nil; {
		rest := n.next
		n.next, chain = chain, n
		n = rest
	}
	w.first[slot] = nil
	w.empty(slot)
	return chain
}
