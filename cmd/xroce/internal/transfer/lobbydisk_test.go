package transfer

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"xroce/engine/sim"
)

// TestOurDiskIsNotTheirFault: a transfer whose data is whole does not give way while that
// goes to disk, however long it takes: its sender would hear of a failure that is none.
func TestOurDiskIsNotTheirFault(t *testing.T) {
	now := time.Unix(0, 0)
	l := &Lobby{
		Places: 4, Transfers: 1, PerSource: 1, Slow: 1 << 20,
		now: func() time.Time { return now },
	}
	r := newRig(t, 10, sim.Faults{})
	var other error
	r.store.sync = func(*os.File) error {
		now = now.Add(time.Hour)
		other = l.enter(from("192.0.2.9")).Admit()
		return nil
	}
	guest := l.enter(from("192.0.2.1"))
	_, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{
		Admit: guest.Admit, Progress: guest.Progress, Whole: guest.Whole,
	}, t.Context(), t.Context())
	if sendErr != nil || receiveErr != nil {
		t.Errorf("sender %v, receiver %v", sendErr, receiveErr)
	}
	if !errors.Is(other, ErrBusy) {
		t.Errorf("the other: %v", other)
	}
}

// TestGivingWayIsBounded: who was hung up on and does not notice, since the disk does not
// answer, is not followed by any number of others who get stuck there.
func TestGivingWayIsBounded(t *testing.T) {
	now := time.Unix(0, 0)
	l := &Lobby{
		Places: 4, Transfers: 2, PerSource: 2, Slow: 1, now: func() time.Time { return now },
	}
	var stuck []*Guest
	for n := range 100 {
		g := l.enter(from(fmt.Sprintf("192.0.2.%d", n)))
		if g.Admit() == nil {
			stuck = append(stuck, g)
		} else {
			g.Leave()
		}
		now = now.Add(time.Hour)
	}
	if len(stuck) != 2*l.Transfers {
		t.Errorf("%d transfers are stuck", len(stuck))
	}
	for _, g := range stuck {
		g.Leave()
	}
	if err := l.enter(from("192.0.2.1")).Admit(); err != nil {
		t.Errorf("when they are gone: %v", err)
	}
	if len(l.leaving) != 0 {
		t.Errorf("%d are still leaving", len(l.leaving))
	}
}

// TestHungUpOnAtTheLastMoment: who gave way before it was known that all had come hears of
// a failure, so there is no file.
func TestHungUpOnAtTheLastMoment(t *testing.T) {
	now := time.Unix(0, 0)
	l := &Lobby{
		Places: 4, Transfers: 1, PerSource: 1, Slow: 1 << 20,
		now: func() time.Time { return now },
	}
	r := newRig(t, 10, sim.Faults{})
	guest := l.enter(from("192.0.2.1"))
	_, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{
		Admit: guest.Admit, Progress: guest.Progress,
		Whole: func() error {
			now = now.Add(time.Hour)
			return errors.Join(l.enter(from("192.0.2.9")).Admit(), guest.Whole())
		},
	}, t.Context(), t.Context())
	if !errors.Is(receiveErr, ErrSlow) || errors.Is(receiveErr, ErrBusy) || sendErr == nil {
		t.Errorf("sender %v, receiver %v", sendErr, receiveErr)
	}
	r.empty(t)
}
