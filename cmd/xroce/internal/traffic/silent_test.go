package traffic_test

import (
	"testing"
	"time"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/clock"
)

// TestCollectAsksAgain: a sink answers a generator that asks again late, because its frames have
// not all come, or because somebody was stopped meanwhile; then it ends soon.
func TestCollectAsksAgain(t *testing.T) {
	for name, c := range map[string]struct {
		lost int
		step clock.Time // how long a wait takes
		asks int        // at which wait it is asked again
		most int        // waits in all
	}{
		"all came":    {step: 10 * clock.Millisecond, asks: 20, most: 60},
		"lost":        {lost: 3, step: 10 * clock.Millisecond, asks: 150, most: 190},
		"all stopped": {step: clock.Second, asks: 10, most: 40},
		"lost once":   {lost: 3, step: 10 * clock.Millisecond, asks: 1000, most: 210},
	} {
		t.Run(name, func(t *testing.T) {
			l, clk := newWireLink(), &virtual{look: 100, tick: 1000}
			l.lose = func(i int) bool { return i < c.lost }
			s := sender(t, plan("10kpps", 10*time.Millisecond, traffic.PlanFlow{}), l, clk)
			sent, err := s.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			end := func() {
				if err := s.End(none); err != nil {
					t.Error(err)
				}
			}
			end()
			waits := 0
			l.wait = func() {
				clk.now += c.step
				if waits++; waits == c.asks {
					end()
				}
			}
			col := traffic.Collector{Link: l, Sink: traffic.NewSink(nil), Clock: clk}
			if err := col.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			asked := 1
			if c.asks < c.most {
				asked = 2
			}
			// Each is a frame, as is the answer to it.
			if got := l.sent - int(sent.Frames); got != 2*asked || waits > c.most {
				t.Errorf("%d ends and answers, want %d; %d waits", got, 2*asked, waits)
			}
		})
	}
}
