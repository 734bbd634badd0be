package cm_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestPeersTimeout: a peer that asks for a local ACK timeout of 2 h 26 min, and is gone, is missed
// within a minute: by the keepalive, and where something is under way by its retries, with a
// keepalive or without. So it is with a keepalive of who wants that timeout himself.
func TestPeersTimeout(t *testing.T) {
	const longest = 31
	for _, tt := range []struct {
		name  string
		end   int // that misses the other one
		alive time.Duration
		sends bool // it waits for what it has sent
	}{
		{"idle", 1, time.Second, false},
		{"under way", 1, time.Second, true},
		{"under way, no keepalive", 1, 0, true},
		{"its own timeout", 0, time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newVirtualWorld(t, cm.Options{})
			setups := [2]cm.Setup{{PD: w.hosts[0].pd}, {PD: w.hosts[1].pd}}
			setups[0].AckTimeout = longest
			setups[tt.end].Keepalive = tt.alive
			var conns [2]*cm.Conn
			conns[0], conns[1] = w.connect(t, setups[0], setups[1])
			end := conns[tt.end]
			must(t, w.SetFaults(sim.Faults{Drop: 1}))
			called := make(chan error, 1)
			if tt.sends {
				go func() { called <- end.Send(context.Background()) }()
				limit := time.Now().Add(testTimeout)
				for end.QP().Snapshot().SendPosted == 0 { // no virtual time passes meanwhile
					if time.Now().After(limit) {
						t.Fatal("nothing is sent")
					}
					runtime.Gosched()
				}
			}
			w.pass(60 * roce.Second)
			if tt.sends {
				if state := end.QP().State(); state != roce.StateErr {
					t.Fatalf("after a minute the queue pair is in %s", state)
				}
				w.until(t, func() bool { return len(called) == 1 })
				var failed *roce.WorkError
				if err := <-called; !errors.As(err, &failed) ||
					failed.Status != roce.StatusRetryExcErr {
					t.Errorf("a call: %v", err)
				}
				return
			}
			if err := end.Err(); !isOver(end) || !errors.Is(err, cm.ErrKeepalive) {
				t.Errorf("after a minute: %v", err)
			}
		})
	}
}
