package cm_test

import (
	"context"
	"errors"
	"testing"

	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestLargeLost: both ends of a connection learn that large packets alone are lost, the one that
// sends them, or asks for them, by its queue pair, the other one by the DREQ. A peer that is gone
// is none of it.
func TestLargeLost(t *testing.T) {
	for _, tt := range []struct {
		name   string
		faults sim.Faults
		large  bool
		call   func(*cm.Conn, cm.Remote, roce.SGE) error
	}{
		{"write", sim.Faults{MTU: 1500}, true, func(c *cm.Conn, to cm.Remote, s roce.SGE) error {
			return c.Write(context.Background(), to, s)
		}},
		{"read", sim.Faults{MTU: 1500}, true, func(c *cm.Conn, to cm.Remote, s roce.SGE) error {
			return c.Read(context.Background(), to, s)
		}},
		{
			"nothing passes",
			sim.Faults{Drop: 1},
			false,
			func(c *cm.Conn, to cm.Remote, s roce.SGE) error {
				return c.Write(context.Background(), to, s)
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newVirtualWorldOf(t, cm.Options{}, 4200)
			far := w.hosts[1]
			setup := far.setup()
			active, passive := w.connect(t, cm.Setup{PD: w.hosts[0].pd}, setup)
			must(t, w.SetFaults(tt.faults))
			called := make(chan error, 1)
			go func() {
				called <- tt.call(active, cm.Remote{Addr: far.mr.Addr(), RKey: far.mr.RKey()},
					w.hosts[0].mr.SGE(0, 4096))
			}()
			// What is posted and not begun has no timer yet, and time would pass without it.
			w.until(t, func() bool { return active.QP().Snapshot().SendBegun == 1 })
			w.pass(10 * roce.Second) // longer than all retries
			w.until(t, func() bool { return len(called) == 1 })
			if err := <-called; !errors.Is(err, roce.ErrFailed) ||
				errors.Is(err, roce.ErrLargeLost) != tt.large {
				t.Errorf("the call: %v", err)
			}
			w.until(t, func() bool { return isOver(active) })
			if !tt.large {
				return
			}
			w.until(t, func() bool { return isOver(passive) })
			if err := passive.Err(); !errors.Is(err, cm.ErrLargeLost) ||
				!errors.Is(err, roce.ErrLargeLost) || errors.Is(err, cm.ErrHungUp) {
				t.Errorf("the peer: %v", err)
			}
		})
	}
}
