package xsk_test

import (
	"testing"

	"xroce/xsk"
)

// TestGroupBusyPolls: while a group is polled that is to busy-poll, the driver is called for each
// queue that has nothing, also when others always have more than is asked for; and what is sent
// leaves with a call of its own.
func TestGroupBusyPolls(t *testing.T) {
	for full := range groupQueues {
		g, peers := fakeGroupOf(t, 1500, func(c *xsk.Config) { c.BusyPoll = 20 })
		const rounds, asked = 40, 4
		frames := make([]xsk.RxFrame, asked)
		got := 0
		for range rounds {
			for _, p := range peers[:full] { // these always have as many as are asked for
				for range asked {
					send(t, p, 0, 64)
				}
			}
			for range 1 + full {
				n := g.Receive(frames)
				g.Release(frames[:n])
				got += n
			}
		}
		if got != rounds*asked*full {
			t.Errorf("%d queues are full: received %d frames", full, got)
		}
		for q, s := range g.Members() {
			st, err := s.Stats()
			if err != nil {
				t.Fatal(err)
			}
			if q >= full && st.RxKicks < rounds {
				t.Errorf("%d queues are full, and the driver of queue %d is called %d times in "+
					"%d rounds", full, q, st.RxKicks, rounds)
			}
		}
		l := lengths(8, 60, 1000)
		send(t, g, 0, l...)
		for q := range full { // what comes there meanwhile does not keep it
			send(t, peers[q], 0, 64)
		}
		collect(t, peers[0], len(l), expect(t, 0, l...))
		if st, _ := g.Stats(); st.TxKicks == 0 || g.Pending() {
			t.Errorf("%d queues are full: %d calls to send, pending %t", full, st.TxKicks,
				g.Pending())
		}
	}
}
