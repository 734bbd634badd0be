package engine_test

import (
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestRateLimit sends a megabit at a rate and looks at the virtual clock.
func TestRateLimit(t *testing.T) {
	for _, kbps := range []uint32{1000, 50_000, 1_000_000} {
		w := simWorld(t, 2, sim.Faults{Delay: roce.Microsecond}, engine.Options{})
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		join(t, a, b, engine.ConnectOptions{RateLimit: kbps})
		if got := a.qp.Query().RateLimit; got != kbps {
			t.Errorf("RATE_LIMIT is %d, want %d", got, kbps)
		}
		const size = 125_000
		before := counterOf(t, w.devs[0], "sent_bytes")
		a.send(t, writeTo(a, b, roce.OpWrite, size))
		w.succeed(a.cq, 1)
		bits := 8 * (counterOf(t, w.devs[0], "sent_bytes") - before)
		want := roce.Time(bits * uint64(roce.Millisecond) / uint64(kbps))
		// Unused time of up to 50 us may be caught up with, and the last packet
		// does not wait for its own bytes.
		slack := 60*roce.Microsecond + 8*5000*roce.Millisecond/roce.Time(kbps)
		if took := w.clock.Now(); took < want-slack || took > want+slack {
			t.Errorf("%d kbit/s: %d bits took %d us, want %d", kbps, bits, took/roce.Microsecond,
				want/roce.Microsecond)
		}
	}
}
