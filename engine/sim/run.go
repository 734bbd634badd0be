package sim

import (
	"errors"
	"fmt"

	"xroce/roce"
)

// ErrStuck says that nothing will happen any more and the run is not done.
var ErrStuck = errors.New("sim: nothing is left to happen")

// A Machine is what Run drives: an engine.Device in direct mode.
type Machine interface {
	// Progress makes one round and reports whether there was anything to do.
	Progress() bool
	// NextDeadline returns when the machine wants another round in any case.
	NextDeadline() (roce.Time, bool)
}

// Run drives machines on a network under virtual time until done reports true:
// each in turn as long as any has something to do, then on to the next event.
// It returns an error when the clock would pass limit or nothing is left to
// happen. The same seed and machines give the same run.
func (n *Network) Run(c *VirtualClock, limit roce.Time, done func() bool, ms ...Machine) error {
	for !done() {
		worked := false
		for _, m := range ms {
			worked = m.Progress() || worked
		}
		if worked {
			continue
		}
		next, any := n.NextArrival()
		for _, m := range ms {
			if at, ok := m.NextDeadline(); ok && (!any || at < next) {
				next, any = at, true
			}
		}
		if !any {
			return ErrStuck
		}
		if next > limit {
			return fmt.Errorf("sim: not done at %d ns", limit)
		}
		c.AdvanceTo(next)
	}
	return nil
}
