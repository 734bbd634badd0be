package traffic_test

import (
	"context"
	"sync"
	"testing"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/clock"
	"xroce/roce/gen"
	"xroce/xsk"
)

// sharedClock is a virtual clock for several goroutines: it moves on when any of them sleeps.
type sharedClock struct {
	mu sync.Mutex
	virtual
}

func (c *sharedClock) Now() clock.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.virtual.Now()
}

func (c *sharedClock) Wall() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.virtual.Wall()
}

func (c *sharedClock) Sleep(ctx context.Context, d clock.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.virtual.Sleep(ctx, d)
}

// TestRunShared: several links send as many frames as one would, each those of its flows, and
// the rows are those of all.
func TestRunShared(t *testing.T) {
	for _, tt := range []struct {
		count uint64
		links int
		flows int
	}{{1000, 1, 1}, {1000, 4, 6}, {4001, 3, 3}, {2, 4, 7}} {
		p := plan("max", 0, traffic.PlanFlow{Flows: tt.flows})
		p.Count = tt.count
		wires := make([]*wireLink, tt.links)
		links := make([]xsk.Link, tt.links)
		schedules := make([]*gen.Schedule, tt.links)
		for i := range links {
			var err error
			if schedules[i], err = p.Schedule(tt.links); err != nil {
				t.Fatal(err)
			}
			wires[i] = newWireLink()
			links[i] = wires[i]
		}
		s := sender(t, p, links[0], &sharedClock{virtual: virtual{tick: 1}})
		var told uint64
		s.Interval = clock.Second
		s.Row = func(r traffic.Row) { told += r.Frames }
		sent, err := s.RunShared(t.Context(), links, schedules)
		if err != nil || sent.Frames != tt.count || sent.Bytes != 64*tt.count || told != tt.count {
			t.Errorf("%+v: %+v, %d in rows, %v", tt, sent, told, err)
		}
		for i, wire := range wires {
			share := (tt.count + uint64(tt.links-1-i)) / uint64(tt.links)
			if uint64(wire.sent) != share {
				t.Errorf("%+v: %d frames on link %d, want %d", tt, wire.sent, i, share)
			}
		}
	}
}
