package transfer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/peer"
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
		other = l.Enter(from("192.0.2.9")).Admit()
		return nil
	}
	sender, receiver := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		guest := l.Enter(receiver)
		_, err := Receive(t.Context(), r.dev[1], receiver, ReceiveConfig{
			Store: r.store, GIDIndex: peer.AutoGID, Admit: guest.Admit, Progress: guest.Progress,
			Whole: guest.Whole,
		})
		receiver.Close()
		ended <- err
	}()
	_, sendErr := Send(t.Context(), r.dev[0], sender, SendConfig{
		File: r.file, Path: "x", GIDIndex: peer.AutoGID,
	})
	sender.Close()
	if err := <-ended; err != nil || sendErr != nil {
		t.Errorf("sender %v, receiver %v", sendErr, err)
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
		g := l.Enter(from(fmt.Sprintf("192.0.2.%d", n)))
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
	if err := l.Enter(from("192.0.2.1")).Admit(); err != nil {
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
	sender, receiver := net.Pipe()
	guest := l.Enter(receiver)
	ended := make(chan error, 1)
	go func() {
		_, err := Receive(t.Context(), r.dev[1], receiver, ReceiveConfig{
			Store: r.store, GIDIndex: peer.AutoGID, Admit: guest.Admit, Progress: guest.Progress,
			Whole: func() error {
				now = now.Add(time.Hour)
				return errors.Join(l.Enter(from("192.0.2.9")).Admit(), guest.Whole())
			},
		})
		receiver.Close()
		ended <- err
	}()
	_, sendErr := Send(t.Context(), r.dev[0], sender, SendConfig{
		File: r.file, Path: "x", GIDIndex: peer.AutoGID,
	})
	sender.Close()
	if err := <-ended; !errors.Is(err, ErrSlow) || errors.Is(err, ErrBusy) || sendErr == nil {
		t.Errorf("sender %v, receiver %v", sendErr, err)
	}
	r.empty(t)
}
