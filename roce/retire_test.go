package roce_test

import (
	"testing"

	"xroce/roce"
)

// TestManyRetire: one acknowledge completes many work requests, in their order, and whoever
// hears of the first finds the slots of all free that can be polled.
func TestManyRetire(t *testing.T) {
	const n = 64 // as the queue has
	s := newScript(t, options{Depth: n, Window: 2 * n, CQDepth: 4 * n})
	post := func(id uint64) {
		must(t, s.qp.PostSend(&roce.SendWR{
			WRID: id, Opcode: roce.OpSend, Flags: roce.SendSignaled,
		}))
	}
	posted, polled := uint64(0), uint64(0)
	for ; posted < n; posted++ {
		post(posted)
	}
	for s.qp.NextPacket(s.now, s.frame) > 0 {
	}
	poll := func() {
		var room [2 * n]roce.Completion
		got, err := s.send.Poll(room[:])
		must(t, err)
		for _, wc := range room[:got] {
			if wc.WRID != polled || wc.Status != roce.StatusSuccess {
				t.Fatalf("completion %d is %+v", polled, wc)
			}
			polled++
			post(posted)
			posted++
		}
	}
	s.told = func(string) { poll() }
	s.send.Arm(false)
	s.Recv(ack(s.us(n - 1)))
	if polled == 0 {
		t.Error("nobody was told")
	}
	poll()
	if polled != n {
		t.Errorf("%d completions of %d", polled, n)
	}
}
