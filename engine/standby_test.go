package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

// A heavySleeper is a link whose Wait goes on when it is woken, until the test lets it end.
type heavySleeper struct {
	*sim.Port
	asleep, up chan struct{}
}

func (l *heavySleeper) Wait(time.Duration) error {
	select {
	case l.asleep <- struct{}{}:
	default:
	}
	<-l.up
	return nil
}

// TestStandbyHoldsNobodyUp: who polls in direct mode drives the device at once, although the
// goroutine that stands by does not wake, as one does not that gets no processor.
func TestStandbyHoldsNobodyUp(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	a := openPort(t, network, 0, engine.Options{Clock: clock})
	port := newPort(t, network, 1)
	link := &heavySleeper{port, make(chan struct{}, 1), make(chan struct{})}
	b, err := engine.OpenLink(link, port, engine.Options{Clock: clock, Direct: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	e := &echo{}
	echoPair(t, a, b, e)
	client, peer := seatOn(t, b, engine.QPInit{MaxInline: 64}), &echo{t: t}
	peer.seat = seatOn(t, a, engine.QPInit{MaxInline: 64})
	join(t, client, peer.seat, engine.ConnectOptions{})
	peer.begin()
	<-link.asleep
	ask(t, client, "by polling")
	late := time.Now().Add(timeout.Scaled(20 * time.Second))
	for got := 0; got == 0; {
		var wcs [1]roce.Completion
		n, err := client.cq.Poll(wcs[:])
		if err != nil || time.Now().After(late) {
			t.Error("nothing comes: ", err)
			break
		}
		if n > 0 && wcs[0].Opcode == roce.WCRecv {
			got++
		}
	}
	close(link.up)
}

// TestTakeDrivesNobody: Take gives what is complete and looks at no link, SendPosted has what was
// posted leave without a poll.
func TestTakeDrivesNobody(t *testing.T) {
	a, b, link := echoDevices(t, true)
	inline := engine.QPInit{MaxInline: 64}
	seat, peer := seatOn(t, b, inline), seatOn(t, a, inline)
	join(t, seat, peer, engine.ConnectOptions{})
	peer.recv(t, 1, 0, 64)
	looks := link.looks.Load()
	seat.send(t, roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendInline | roce.SendSignaled, Inline: []byte("hello"),
	})
	var wcs [1]roce.Completion
	if n, err := seat.cq.Take(wcs[:]); n != 0 || err != nil || link.looks.Load() != looks {
		t.Errorf("%d, %v, %d looks", n, err, link.looks.Load()-looks)
	}
	b.SendPosted()
	hear(t, peer, "hello")
	comesAbout(t, func() bool {
		b.Progress() // for the acknowledgement
		n, err := seat.cq.Take(wcs[:])
		return n == 1 && err == nil && wcs[0].Status == roce.StatusSuccess
	})
	looks = link.looks.Load()
	b.SendPosted()
	if link.looks.Load() != looks {
		t.Error("nothing was posted")
	}
}

// TestDriveDoesNotSleepOnCompletions: with completions that nobody took, it returns at once.
func TestDriveDoesNotSleepOnCompletions(t *testing.T) {
	a, b, link := echoDevices(t, true)
	inline := engine.QPInit{MaxInline: 64}
	seat, peer := seatOn(t, b, inline), seatOn(t, a, inline)
	join(t, seat, peer, engine.ConnectOptions{})
	ask(t, peer, "here")
	seat.recv(t, 1, 0, 64)
	comesAbout(t, func() bool { b.Progress(); return seat.cq.Arm(false) })
	b.Progress()
	waits := link.waits.Load()
	b.Rouse()
	for range 3 {
		b.Drive(time.Hour, seat.cq)
	}
	if n := link.waits.Load() - waits; n > 1 {
		t.Errorf("it slept %d times", n)
	}
	if err := b.WakeOn(0); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("a simulated link watches a descriptor: %v", err)
	}
}

// TestDriveSleepsInTheLink: Drive sleeps for as long as nothing comes, and not beside others who
// do, nor where a driver moves packets.
func TestDriveSleepsInTheLink(t *testing.T) {
	a, b, link := echoDevices(t, true)
	if a.Drive(time.Hour) {
		t.Error("it drives a device that has a driver")
	}
	waits := link.waits.Load()
	b.Rouse() // ends the next one
	if !b.Drive(time.Hour) || link.waits.Load() != waits+1 {
		t.Errorf("it slept %d times", link.waits.Load()-waits)
	}
	inline := engine.QPInit{MaxInline: 64}
	seat, peer := seatOn(t, b, inline), seatOn(t, a, inline)
	join(t, seat, peer, engine.ConnectOptions{})
	ask(t, peer, "wake up")
	seat.recv(t, 1, 0, 64)
	comesAbout(t, func() bool {
		var wcs [1]roce.Completion
		driven := b.Drive(time.Hour)
		n, err := seat.cq.Take(wcs[:])
		return driven && n == 1 && err == nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	waits = link.waits.Load()
	go func() {
		defer close(over)
		_, _ = seat.cq.Wait(ctx, make([]roce.Completion, 1)) // the context ends it
	}()
	comesAbout(t, func() bool { return link.waits.Load() > waits && !b.Drive(time.Nanosecond) })
	cancel()
	<-over
}
