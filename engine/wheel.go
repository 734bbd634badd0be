package engine

import (
	"math/bits"

	"xroce/roce"
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
	wheelLevels = (63 - tickBits + digitBits - 1) / digitBits // for any roce.Time
	dueList     = wheelLevels * wheelSlots                    // behind the last slot
)

// A wheel holds QPs by the time at which they next want to be looked at, each
// at most once, linked through the QPs. All it does costs the same however many
// it holds.
//
// It is lazy: when a deadline moves later, as it does with every
// acknowledgement, the QP stays where it is, is looked at too early, and finds
// its new place then.
//
// A QP is filed under the highest digit in which its tick differs from the tick
// at which the wheel stands. So all of a level comes before all of the next,
// and the first used slot of the lowest used level has the soonest deadline.
// When the wheel reaches a slot, the QPs in it are filed again, further down. In
// its last tick a QP waits in level 0 for its very nanosecond: none is served
// early, and none late by the wheel's doing.
type wheel struct {
	tick   uint64              // where the wheel stands
	levels uint64              // bit set: of the levels in use
	used   [wheelLevels]uint64 // bit sets: of their slots in use
	// first begins the list of each slot, and of those whose time has come.
	first [dueList + 1]*QP
	// soonest is a bound of the deadlines in each list that is not empty, and
	// exact when none was removed from it.
	soonest [dueList + 1]roce.Time
}

// arm puts qp in, or moves it forward, to be looked at by time at.
func (w *wheel) arm(qp *QP, at roce.Time) {
	if qp.timerSlot != 0 {
		if at >= qp.timerAt {
			return
		}
		w.remove(qp)
	}
	qp.timerAt = at
	w.file(qp)
}

// next returns a time at which a QP may want to be looked at, never later than
// the earliest one armed. When pop has been called at that time, the next one is
// later.
func (w *wheel) next() (roce.Time, bool) {
	if w.first[dueList] != nil {
		return w.soonest[dueList], true
	}
	if w.levels == 0 {
		return 0, false
	}
	_, slot := w.earliest()
	return w.soonest[slot], true
}

// pop takes out and returns a QP whose time has come, nil when there is none.
func (w *wheel) pop(now roce.Time) *QP {
	if w.first[dueList] == nil && w.levels != 0 {
		w.turn(now)
	}
	qp := w.first[dueList]
	if qp != nil {
		w.remove(qp)
	}
	return qp
}

// remove takes qp out, if it is in.
func (w *wheel) remove(qp *QP) {
	if qp.timerSlot == 0 {
		return
	}
	slot := int(qp.timerSlot) - 1
	if qp.prevTimer == nil {
		w.first[slot] = qp.nextTimer
	} else {
		qp.prevTimer.nextTimer = qp.nextTimer
	}
	if qp.nextTimer != nil {
		qp.nextTimer.prevTimer = qp.prevTimer
	}
	if w.first[slot] == nil {
		w.empty(slot)
	}
	qp.nextTimer, qp.prevTimer, qp.timerSlot = nil, nil, 0
}

// file puts a QP that is in no list into the one of its deadline.
func (w *wheel) file(qp *QP) {
	// One that is late belongs to the tick that it is.
	tick := max(uint64(qp.timerAt)>>tickBits, w.tick)
	level := 0
	if differ := tick ^ w.tick; differ != 0 {
		level = (bits.Len64(differ) - 1) / digitBits
	}
	digit := int(tick>>(level*digitBits)) % wheelSlots
	w.levels |= 1 << level
	w.used[level] |= 1 << digit
	w.link(qp, level*wheelSlots+digit)
}

// link puts a QP at the front of a list.
func (w *wheel) link(qp *QP, slot int) {
	second := w.first[slot]
	if second == nil {
		w.soonest[slot] = qp.timerAt
	} else {
		second.prevTimer = qp
		w.soonest[slot] = min(w.soonest[slot], qp.timerAt)
	}
	w.first[slot] = qp
	qp.nextTimer, qp.prevTimer, qp.timerSlot = second, nil, uint16(slot+1)
}

// empty notes that a list has become empty.
func (w *wheel) empty(slot int) {
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
func (w *wheel) earliest() (begin uint64, slot int) {
	level := bits.TrailingZeros64(w.levels)
	digit := bits.TrailingZeros64(w.used[level])
	above := w.tick >> ((level + 1) * digitBits)
	return (above<<digitBits | uint64(digit)) << (level * digitBits), level*wheelSlots + digit
}

// turn brings the wheel to the tick of now. It files the QPs of all slots that
// began by then again, those whose time has come into the list of these.
func (w *wheel) turn(now roce.Time) {
	tick := uint64(now) >> tickBits
	var moving *QP
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
		qp := moving
		moving = qp.nextTimer
		if qp.timerAt <= now {
			w.link(qp, dueList)
		} else {
			w.file(qp)
		}
	}
}

// take empties a slot onto a chain, which is linked by nextTimer only.
func (w *wheel) take(slot int, chain *QP) *QP {
	for qp := w.first[slot]; qp != nil; {
		rest := qp.nextTimer
		qp.nextTimer, chain = chain, qp
		qp = rest
	}
	w.first[slot] = nil
	w.empty(slot)
	return chain
}
