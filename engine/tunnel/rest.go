package tunnel

import (
	"time"

	"xroce/roce/clock"
)

// A rest says when a loop without work may sleep. To be woken is most of what the way of a single
// datagram takes, so the loop looks for work for a while first; but what it looks in vain is time
// that others could have. How long is learned from the pauses between work, as KVM learns how
// long a halted processor is polled (kernel virt/kvm/kvm_main.c, halt_poll_ns):
//
//   - a pause that ended while it looked changes nothing;
//   - one that was longer, and still worth looking for, doubles how long it looks;
//   - one that was longer than lookMost ends looking: so a tunnel at rest costs nothing.
//
// Between two looks the loop yields the processor. Where others need it they have it, for as long
// as the kernel lets them, which is a long pause, and longer than it takes to be woken. So a look
// that was in vain is followed by pauses without one, the more the more often that happens: on a
// busy machine the loop hardly ever looks.
//
// It reads no clock, and is of one goroutine.
type rest struct {
	always clock.Time // how long to look, whatever the pauses are; 0 learns it
	limit  clock.Time // how long to look, as learned
	since  clock.Time // when there was nothing to do for the first time, 0 while there is
	vain   int        // pauses to let pass after the last look that was in vain
	pass   int        // those of them that are left
}

// How long a loop looks for work at first, and at most.
const (
	lookLeast = 20 * clock.Time(time.Microsecond)
	lookMost  = 200 * clock.Time(time.Microsecond)
)

// vainMost is how many pauses pass without a look at most.
const vainMost = 63

// ends notes that there is work again.
func (r *rest) ends(now clock.Time) {
	if r.since == 0 {
		return
	}
	pause := now - r.since
	r.since = 0
	switch {
	case pause > lookMost && r.limit > 0:
		r.vain = min(2*r.vain+1, vainMost)
		r.limit, r.pass = 0, r.vain
	case pause > lookMost:
	case r.pass > 0:
		r.pass--
	case pause > r.limit:
		r.limit = min(max(2*r.limit, lookLeast), lookMost)
	default:
		r.vain = 0
	}
}

// mayRest reports whether the loop, which has nothing to do, has looked for work for long enough.
func (r *rest) mayRest(now clock.Time) bool {
	if r.since == 0 {
		r.since = max(now, 1)
	}
	if r.always != 0 {
		return now-r.since >= r.always
	}
	return now-r.since >= r.limit
}
