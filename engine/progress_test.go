package engine_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk"
	"xroce/xsk/xsktest/timeout"
)

// A deepSleep is a port in which the driver sleeps until it is woken, whatever comes.
type deepSleep struct {
	*simPort
	asleep chan struct{} // gets a value each time that it falls asleep
	woken  chan struct{}
}

func (d *deepSleep) Wait(time.Duration) error {
	d.asleep <- struct{}{}
	<-d.woken
	return nil
}

func (d *deepSleep) Wake() {
	select {
	case d.woken <- struct{}{}:
	default:
	}
}

// TestProgressWakesTheDriver: a round that somebody else makes may leave a deadline that
// is sooner than the one that the driver sleeps for.
func TestProgressWakesTheDriver(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	link := &deepSleep{
		simPort: newPort(t, network, 0),
		asleep:  make(chan struct{}, 16), woken: make(chan struct{}, 1),
	}
	dev, err := engine.OpenLink(link, link, engine.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}()
	peer := newPort(t, network, 1)
	await := func(what string) {
		t.Helper()
		select {
		case <-link.asleep:
		case <-time.After(timeout.Scaled(10 * time.Second)):
			t.Fatal("the driver", what)
		}
	}
	await("does not fall asleep")
	var frame [1]xsk.TxFrame
	if peer.Reserve(frame[:]) != 1 {
		t.Fatal("no free frame")
	}
	mac := dev.Port().MAC
	copy(frame[0].Data, mac[:])
	frame[0].Len = 60
	peer.Transmit(frame[:])
	if err := peer.Flush(); err != nil {
		t.Fatal(err)
	}
	if !dev.Progress() {
		t.Fatal("no frame came")
	}
	await("was not woken")
}

// TestErrWakesWhoSleeps: in direct mode somebody may sleep with the progress lock, for as long
// as nothing comes. Who asks how the device is does not wait for that.
func TestErrWakesWhoSleeps(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	link := &deepSleep{
		simPort: newPort(t, network, 0),
		asleep:  make(chan struct{}, 16), woken: make(chan struct{}, 1),
	}
	dev, err := engine.OpenLink(link, link, engine.Options{Clock: clock, Direct: true})
	if err != nil {
		t.Fatal(err)
	}
	cq, err := dev.CreateCQ(1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() {
		var wcs [1]roce.Completion
		_, err := cq.Wait(ctx, wcs[:])
		waited <- err
	}()
	<-link.asleep
	told := make(chan error, 1)
	go func() { told <- dev.Err() }()
	select {
	case err := <-told:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(timeout.Scaled(10 * time.Second)):
		t.Error("Err waits for who sleeps")
	}
	stop()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("Wait ended with %v", err)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}

// TestSimulationWaitsForTheQueue: that a queue is held for a moment is not the end of a
// simulation.
func TestSimulationWaitsForTheQueue(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	a.send(t, writeTo(a, b, roce.OpWrite, 100))
	unlock := engine.LockQueue(w.devs[0], 0)
	go func() {
		for !engine.AwaitsQueue(w.devs[0], 0) {
			runtime.Gosched()
		}
		unlock()
	}()
	w.succeed(a.cq, 1)
}
