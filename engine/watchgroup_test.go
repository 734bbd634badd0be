package engine_test

import (
	"fmt"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
)

// TestWatchGroup: a datagram to a multicast group is dropped when none of its members here takes
// it, for the reason of one of them.
func TestWatchGroup(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	group := groups[0]
	a := datagramSeat(t, w.devs[0], engine.QPInit{})
	members := [2]*seat{}
	for i := range members {
		members[i] = datagramSeat(t, w.devs[1], engine.QPInit{})
		members[i].attach(t, group.gid)
	}
	var seen watched
	defer w.devs[1].Watch(&seen)()
	for i, verdict := range []string{"dropped: no_receive", "accepted", "accepted"} {
		if i > 0 {
			members[i-1].recv(t, 1, 0, 100)
		}
		a.multicast(t, group.gid, group.index, 1)
		w.run(func() bool { return len(seen.lines) == i+1 })
		if want := fmt.Sprintf("in peer 0x%06x %s", a.qp.QPN(), verdict); seen.lines[i] != want {
			t.Errorf("%q, want %q", seen.lines[i], want)
		}
	}
}
