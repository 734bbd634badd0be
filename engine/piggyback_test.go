package engine_test

import (
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestReplyCarriesTheAck: between ends that agree on it a message there and one back are two
// packets, and four without.
func TestReplyCarriesTheAck(t *testing.T) {
	for _, ext := range []roce.Extensions{0, roce.ExtPiggybackAck} {
		clock := engine.NewSystemClock()
		network := newNetwork(t, 1, clock, sim.Faults{})
		o := engine.Options{Clock: clock, Direct: true}
		init := engine.QPInit{MaxInline: 64, Extensions: ext}
		a := seatOn(t, openPort(t, network, 0, o), init)
		b := seatOn(t, openPort(t, network, 1, o), init)
		join(t, a, b, engine.ConnectOptions{})
		const rounds = 50
		hit := roce.SendWR{Opcode: roce.OpSend, Flags: roce.SendInline, Inline: []byte("ball")}
		var wcs [4]roce.Completion
		for range rounds {
			for _, way := range [][2]*seat{{a, b}, {b, a}} {
				way[1].recv(t, 1, 0, 64)
				way[0].send(t, hit)
				for n := 0; n == 0; {
					way[0].dev.SendPosted()
					var err error
					if n, err = way[1].cq.Poll(wcs[:]); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		want := uint64(2 * rounds)
		if ext != 0 {
			want = rounds
		}
		for _, s := range []*seat{a, b} {
			if sent := counterOf(t, s.dev, "sent_pkts"); sent > want || sent+2 < want {
				t.Errorf("%s: %d packets for %d messages, want %d", ext, sent, rounds, want)
			}
		}
	}
}
