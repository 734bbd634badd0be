package traffic_test

import (
	"context"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/clock"
)

// TestSwappedAtTheEnd: a frame that is to come behind the next one is sent also where there is no
// next one, whatever ends the run: a count, which is kept then, the schedule or the caller.
func TestSwappedAtTheEnd(t *testing.T) {
	for _, fault := range []string{"swap=1", "swap=2", "swap=5", "duplicate=5"} {
		for count := range uint64(32) {
			for _, flows := range []int{1, 3} {
				flow := traffic.PlanFlow{Flows: flows, Faults: []string{fault}}
				p := plan("1kpps", time.Second, flow)
				if count < 2 {
					p = plan("100pps", time.Duration(5*(count+9))*10*time.Millisecond, flow)
				} else {
					p.Count = count
				}
				ctx, stop := context.WithCancel(t.Context())
				l, c := newWireLink(), &virtual{look: 100, tick: 50 * clock.Microsecond}
				s := sender(t, p, l, c)
				if count == 1 {
					s.Meanwhile = func() error {
						if s.Numbered() >= 7 {
							stop()
						}
						return nil
					}
				}
				sent, err := s.Run(ctx)
				stop()
				if err != nil {
					t.Fatal(err)
				}
				if err := s.End(none); err != nil {
					t.Fatal(err)
				}
				counts, _ := collectAll(t, l, c, "").Counts()
				twice := traffic.Faults(s.Flows)["duplicate"]
				if counts.Lost != 0 || counts.Received != s.Numbered() ||
					counts.Duplicates != twice || sent.Frames != s.Numbered()+twice ||
					p.Count > 0 && sent.Frames != count {
					t.Errorf("%s, %d flows, %d frames: %+v sent, %d numbered: %+v came, %d twice",
						fault, flows, count, sent, s.Numbered(), counts, twice)
				}
			}
		}
	}
}
