package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestWatchRaw: a watch tells of the frames of raw QPs, and why one is dropped.
func TestWatchRaw(t *testing.T) {
	for _, o := range []engine.Options{rawOptions, {RawPackets: true, CountQPs: true}} {
		w := simWorld(t, 2, sim.Faults{}, o)
		a, b := rawSeat(t, w.devs[0]), rawSeat(t, w.devs[1], experimental)
		var atA, atB watched
		defer w.devs[0].Watch(&atA)()
		defer w.devs[1].Watch(&atB)()
		var want []string
		send := func(verdict string) {
			t.Helper()
			a.frame(t, w.devs[1].Port().MAC, experimental, 100)
			w.succeed(a.cq, 1)
			want = append(want, "in "+verdict)
			w.run(func() bool { return len(atB.lines) == len(want) })
		}
		send("dropped: out_of_buffer")
		b.recv(t, 1, 0, 99)
		b.recv(t, 2, 0, 100)
		send("dropped: too_long")
		must(t, b.qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState))
		send("dropped: qp_state")
		must(t, b.qp.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState))
		must(t, b.qp.Start(0))
		b.recv(t, 3, 0, 100)
		send("accepted")
		b.recv(t, 4, 0, 100)
		must(t, b.mr.Deregister())
		send("dropped: local_memory")
		if !slices.Equal(atB.lines, want) {
			t.Errorf("at B: %q, want %q", atB.lines, want)
		}
		sent := fmt.Sprintf("out qp 0x%06x wr 0 sent", a.qp.QPN())
		if !slices.Equal(atA.lines, slices.Repeat([]string{sent}, len(want))) {
			t.Errorf("at A: %q, want %q each", atA.lines, sent)
		}
	}
}
