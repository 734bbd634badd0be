package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk"
	"xroce/xsk/xsktest/leaktest"
	"xroce/xsk/xsktest/timeout"
)

// An echo is a service that says back what a QP receives, and ticks.
type echo struct {
	t      *testing.T
	seat   *seat
	period roce.Time // 0 for no ticks
	slow   bool      // one completion a call

	mu     sync.Mutex // to be taken in a handler must not deadlock
	handle *engine.ServiceHandle
	next   roce.Time
	ticks  []roce.Time
	said   int
	ended  []error
	inside atomic.Int32
}

// begin adds the service to the device of its seat, which is connected.
func (e *echo) begin() *echo {
	e.t.Helper()
	e.mu.Lock()
	for i := range 16 {
		e.seat.recv(e.t, uint64(i), 64*i, 64)
	}
	if e.period > 0 {
		e.next = e.seat.dev.Now() + e.period
	}
	e.mu.Unlock()
	handle, err := e.seat.dev.AddService(e, e.seat.cq)
	if err != nil {
		e.t.Fatal(err)
	}
	e.handle = handle
	return e
}

// enter tests that calls come one at a time and without a lock of the device.
func (e *echo) enter() (leave func()) {
	if e.inside.Add(1) != 1 {
		e.t.Error("two calls at a time")
	}
	e.mu.Lock()
	e.seat.qp.Query()
	return func() { e.mu.Unlock(); e.inside.Add(-1) }
}

func (e *echo) HandleCompletions(roce.Time) bool {
	defer e.enter()()
	var wcs [16]roce.Completion
	room := wcs[:]
	if e.slow {
		room = wcs[:1]
	}
	for {
		n, err := e.seat.cq.Poll(room)
		if err != nil {
			return false
		}
		for _, wc := range wcs[:n] {
			if wc.Opcode == roce.WCRecv && wc.Status == roce.StatusSuccess {
				e.say(int(wc.WRID), int(wc.ByteLen))
			}
		}
		switch {
		case n > 0 && e.slow:
			return true
		case n == 0 && !e.seat.cq.Arm(false):
			return false
		}
	}
}

// say sends what came and posts its receive again.
func (e *echo) say(slot, n int) {
	e.said++
	e.seat.send(e.t, roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendInline, Inline: e.seat.mr.Bytes()[64*slot:][:n],
	})
	e.seat.recv(e.t, uint64(slot), 64*slot, 64)
}

func (e *echo) NextDeadline() (roce.Time, bool) {
	defer e.enter()()
	return e.next, e.next != 0
}

func (e *echo) HandleDeadline(now roce.Time) {
	defer e.enter()()
	e.ticks = append(e.ticks, now)
	e.next = now + e.period
}

func (e *echo) HandleFailure(err error) {
	defer e.enter()()
	e.ended = append(e.ended, err)
}

// count says how often something happened to the service.
func (e *echo) count() (said, ticks, ended int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.said, len(e.ticks), len(e.ended)
}

// echoPair has a seat on one device and a service on another, in direct mode or not.
func echoPair(t *testing.T, a, b *engine.Device, e *echo) *seat {
	t.Helper()
	init := engine.QPInit{MaxInline: 64}
	client := seatOn(t, a, init)
	e.t, e.seat = t, seatOn(t, b, init)
	join(t, client, e.seat, engine.ConnectOptions{})
	e.begin()
	return client
}

// ask posts what a service is to say back.
func ask(t *testing.T, s *seat, words string) {
	t.Helper()
	s.recv(t, 1, 0, 64)
	s.send(t, roce.SendWR{Opcode: roce.OpSend, Flags: roce.SendInline, Inline: []byte(words)})
}

// TestServiceInSimulation: under virtual time Progress runs services and NextDeadline tells
// of them, at the very nanosecond and the same in every run.
func TestServiceInSimulation(t *testing.T) {
	run := func(slow bool) string {
		w := simWorld(t, 2, sim.Faults{Delay: 3 * roce.Microsecond}, engine.Options{})
		e := &echo{period: 10 * roce.Millisecond, slow: slow}
		client := echoPair(t, w.devs[0], w.devs[1], e)
		for i := range 20 {
			ask(t, client, fmt.Sprint("number ", i))
		}
		for got := 0; got < 20; {
			for _, wc := range w.take(client.cq, 1) {
				if wc.Opcode == roce.WCRecv {
					got++
				}
			}
		}
		w.run(func() bool { _, ticks, _ := e.count(); return ticks == 5 })
		for i, at := range e.ticks {
			if want := roce.Time(i+1) * e.period; at != want {
				t.Errorf("tick %d at %d, not at %d", i, at, want)
			}
		}
		e.handle.Close()
		e.handle.Close()
		if at, ok := w.devs[1].NextDeadline(); ok && at <= w.clock.Now()+e.period {
			t.Errorf("a deadline at %d is left", at)
		}
		return fmt.Sprint(e.said, e.ticks, w.clock.Now(), w.network.Counts())
	}
	for _, slow := range []bool{false, true} {
		if first, second := run(slow), run(slow); first != second {
			t.Errorf("two runs differ:\n%s\n%s", first, second)
		}
	}
}

// TestServiceWake: a deadline that changes outside of a handler is asked for after Wake.
func TestServiceWake(t *testing.T) {
	for _, direct := range []bool{false, true} {
		a, b, _ := echoDevices(t, direct)
		e := &echo{}
		echoPair(t, a, b, e)
		e.mu.Lock()
		e.period, e.next = roce.Millisecond, b.Now()+roce.Millisecond
		e.mu.Unlock()
		e.handle.Wake()
		comesAbout(t, func() bool { _, ticks, _ := e.count(); return ticks >= 3 })
		e.handle.Close()
		_, ticks, _ := e.count()
		time.Sleep(5 * time.Millisecond)
		if _, later, _ := e.count(); later != ticks {
			t.Error("called after Close")
		}
	}
}

// comesAbout waits for a condition.
func comesAbout(t *testing.T, good func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout.Scaled(20 * time.Second)); !good(); {
		if time.Now().After(deadline) {
			t.Fatal("it does not come about")
		}
		time.Sleep(100 * time.Microsecond) // not to be right, but to leave others the CPU
	}
}

// A countedLink counts what whoever drives it does.
type countedLink struct {
	*sim.Port
	looks, waits atomic.Int64
	broken       atomic.Bool
	used         chan struct{} // has something when it was; room for one
}

// use notes that somebody looks or waits.
func (l *countedLink) use() {
	select {
	case l.used <- struct{}{}:
	default:
	}
}

func (l *countedLink) Receive(dst []xsk.RxFrame) int {
	l.looks.Add(1)
	l.use()
	return l.Port.Receive(dst)
}

func (l *countedLink) Wait(timeout time.Duration) error {
	l.waits.Add(1)
	l.use()
	if err := l.Port.Wait(timeout); err != nil || !l.broken.Load() {
		return err
	}
	return errors.New("the link is broken")
}

// echoDevices makes two devices in real time, the second on a link that counts, and in
// direct mode or not.
func echoDevices(t *testing.T, direct bool) (a, b *engine.Device, link *countedLink) {
	t.Helper()
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	a = openPort(t, network, 0, engine.Options{Clock: clock})
	link = &countedLink{Port: newPort(t, network, 1), used: make(chan struct{}, 1)}
	b, err := engine.OpenLink(link, link.Port, engine.Options{Clock: clock, Direct: direct})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, b, link
}

// hear waits for the answer of a service.
func hear(t *testing.T, s *seat, words string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(20*time.Second))
	defer cancel()
	for {
		var wcs [1]roce.Completion
		if _, err := s.cq.Wait(ctx, wcs[:]); err != nil {
			t.Fatal(err)
		}
		if wc := wcs[0]; wc.Opcode == roce.WCRecv {
			if got := string(s.mr.Bytes()[:wc.ByteLen]); got != words {
				t.Errorf("%q, not %q", got, words)
			}
			return
		}
	}
}

// TestServiceAnswers: in real time a service answers though nobody else drives its device,
// in either mode, and when there is nothing to do nothing wakes up.
func TestServiceAnswers(t *testing.T) {
	for _, direct := range []bool{false, true} {
		for _, slow := range []bool{false, true} {
			a, b, link := echoDevices(t, direct)
			e := &echo{slow: slow}
			client := echoPair(t, a, b, e)
			for i := range 30 {
				words := fmt.Sprint("number ", i)
				ask(t, client, words)
				hear(t, client, words)
			}
			quiet(t, link)
			ask(t, client, "once more")
			hear(t, client, "once more")
			e.handle.Close()
		}
	}
}

// quiet tests that a device comes to do nothing. What was said last is acknowledged first,
// and a timer of a QP, which is lazy, may find out that there is nothing to do; then nobody
// looks at the link for as long as this does. Whoever polled would.
func quiet(t *testing.T, link *countedLink) {
	t.Helper()
	const long = 350 * time.Millisecond
	rest, late := time.NewTimer(long), time.NewTimer(timeout.Scaled(20*time.Second))
	defer rest.Stop()
	defer late.Stop()
	for {
		select {
		case <-link.used:
			rest.Reset(long)
		case <-rest.C:
			return
		case <-late.C:
			t.Fatal("it does not come to do nothing")
		}
	}
}

// TestServiceStepsBack: who polls in direct mode, or waits, or calls what needs the
// progress lock, gets it from the goroutine that stands by.
func TestServiceStepsBack(t *testing.T) {
	a, b, link := echoDevices(t, true)
	e := &echo{}
	echoPair(t, a, b, e)
	other := seatOn(t, b, engine.QPInit{MaxInline: 64})
	peer := &echo{t: t, seat: seatOn(t, a, engine.QPInit{MaxInline: 64})}
	join(t, other, peer.seat, engine.ConnectOptions{})
	peer.begin()
	quiet(t, link) // it sleeps in the link
	for range 3 {
		other.qp.Query()
		seatOn(t, b, engine.QPInit{}).qp.Close()
		ask(t, other, "by waiting")
		hear(t, other, "by waiting")
		ask(t, other, "by polling")
		deadline := time.Now().Add(timeout.Scaled(20 * time.Second))
		for got := 0; got == 0; {
			var wcs [1]roce.Completion
			if n, err := other.cq.Poll(wcs[:]); err != nil || time.Now().After(deadline) {
				t.Fatal("nothing comes: ", err)
			} else if n > 0 && wcs[0].Opcode == roce.WCRecv {
				got++
			}
		}
		quiet(t, link)
	}
	if said, _, _ := peer.count(); said != 6 {
		t.Errorf("%d answers", said)
	}
}

// TestServiceEnds: a service hears once that its link has failed or its device is closed,
// and nothing once it has closed its handle.
func TestServiceEnds(t *testing.T) {
	for _, direct := range []bool{false, true} {
		running := leaktest.Running()
		a, b, link := echoDevices(t, direct)
		broken, closed := &echo{}, &echo{}
		echoPair(t, a, b, broken)
		client := echoPair(t, b, a, closed)
		gone := &echo{}
		echoPair(t, b, a, gone)
		gone.handle.Close()
		if _, err := a.AddService(gone, closed.seat.cq); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("a CQ of two services: %v", err)
		}
		link.broken.Store(true)
		link.Wake()
		comesAbout(t, func() bool { _, _, ended := broken.count(); return ended == 1 })
		if err := broken.ended[0]; !errors.Is(err, b.Err()) {
			t.Errorf("ended by %v, not %v", err, b.Err())
		}
		if _, err := b.AddService(gone); err == nil {
			t.Error("a service for a device that has failed")
		}
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Error(err)
		}
		for _, e := range []*echo{broken, closed} {
			if _, _, ended := e.count(); ended != 1 {
				t.Errorf("ended %d times", ended)
			}
			e.handle.Close()
		}
		if _, _, ended := gone.count(); ended != 0 {
			t.Error("called after Close")
		}
		client.qp.Close()
		leaktest.None(t, running)
	}
}
