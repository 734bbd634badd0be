package engine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/roce"
	"xroce/roce/mem"
)

// newEvents returns a device that has nothing but events.
func newEvents(t *testing.T) *Device {
	t.Helper()
	d := &Device{}
	d.async.init()
	t.Cleanup(func() {
		if err := d.async.close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// readable polls a descriptor.
func readable(t *testing.T, fd int) bool {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
}

// newIdleQP returns a QP that has nothing but events.
func newIdleQP() *QP { return &QP{control: &qpControl{}} }

// TestEventsAgainstModel raises, takes and closes at random. The model keeps
// what must still come of each object, in order.
func TestEventsAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	d := newEvents(t)
	var fd int
	qps := []*QP{newIdleQP(), newIdleQP(), newIdleQP()}
	cqs := []*CQ{{}, {}}
	model := map[AsyncEvent][]roce.Event{}
	left := func() (n int) {
		for _, types := range model {
			n += len(types)
		}
		return n
	}
	for step := range 20000 {
		var about AsyncEvent
		switch rng.IntN(3) {
		case 0:
			about.QP = qps[rng.IntN(len(qps))]
		case 1:
			about.CQ = cqs[rng.IntN(len(cqs))]
		}
		switch rng.IntN(8) {
		case 0, 1, 2:
			e := about
			e.Type = roce.Event(rng.IntN(4))
			d.raise(e)
			types := slices.DeleteFunc(model[about], func(x roce.Event) bool { return x == e.Type })
			model[about] = append(types, e.Type)
		case 3:
			if qp := about.QP; qp != nil {
				qp.closed = true
				d.async.forget(qp.control.events)
				d.raise(AsyncEvent{Type: roce.EventQPFatal, QP: qp})
				delete(model, about)
				qps[slices.Index(qps, qp)] = newIdleQP()
			}
		default:
			e, ok := d.PollEvent()
			if ok != (left() > 0) {
				t.Fatalf("step %d: an event: %t, with %d waiting", step, ok, left())
			}
			if !ok {
				break
			}
			about := e
			about.Type = 0
			if types := model[about]; len(types) == 0 || types[0] != e.Type {
				t.Fatalf("step %d: %s, expected of %v", step, e.Type, types)
			}
			model[about] = model[about][1:]
		}
		if step == 100 { // with events waiting, as for a late reader
			var err error
			if fd, err = d.EventFD(); err != nil {
				t.Fatal(err)
			}
		}
		if step >= 100 && readable(t, fd) != (left() > 0) {
			t.Fatalf("step %d: readable %t with %d events", step, readable(t, fd), left())
		}
	}
}

// TestLastPortEventIsTheTruth has a port flap while nobody looks.
func TestLastPortEventIsTheTruth(t *testing.T) {
	d := newEvents(t)
	for range 5 {
		d.raise(AsyncEvent{Type: roce.EventPortErr})
		d.raise(AsyncEvent{Type: roce.EventPortActive})
	}
	for _, want := range []roce.Event{roce.EventPortErr, roce.EventPortActive} {
		if e, ok := d.PollEvent(); !ok || e.Type != want {
			t.Errorf("%s (%t), want %s", e.Type, ok, want)
		}
	}
	if e, ok := d.PollEvent(); ok {
		t.Errorf("one more: %s", e.Type)
	}
}

// TestEventsChannel raises from many goroutines. Nobody hears more than was
// raised, and what is raised last is heard.
func TestEventsChannel(t *testing.T) {
	const raisers, each = 4, 2000
	d := newEvents(t)
	qps := [raisers]*QP{}
	for i := range qps {
		qps[i] = newIdleQP()
	}
	var wg sync.WaitGroup
	for _, qp := range qps {
		wg.Go(func() {
			for range each {
				d.raise(AsyncEvent{Type: roce.EventCommEst, QP: qp})
			}
			d.raise(AsyncEvent{Type: roce.EventQPFatal, QP: qp})
		})
	}
	heard, fatal := 0, map[*QP]bool{}
	for e := range d.Events() {
		if heard++; e.Type == roce.EventQPFatal {
			fatal[e.QP] = true
		}
		if len(fatal) == raisers {
			break
		}
	}
	wg.Wait()
	if heard > raisers*(each+1) {
		t.Errorf("heard %d events, %d were raised", heard, raisers*(each+1))
	}
}

// TestEventsAfterClose has no descriptor, no event and a closed channel, also
// when the adapter has an event that nobody wants.
func TestEventsAfterClose(t *testing.T) {
	for _, listening := range []bool{false, true} {
		d := &Device{}
		d.async.init()
		if listening {
			d.Events()
		}
		d.raise(AsyncEvent{Type: roce.EventPortErr})
		d.raise(AsyncEvent{Type: roce.EventGIDChange})
		if err := d.async.close(); err != nil {
			t.Fatal(err)
		}
		d.raise(AsyncEvent{Type: roce.EventPortErr})
		if e, ok := d.PollEvent(); ok {
			t.Errorf("an event after Close: %s", e.Type)
		}
		if e, ok := <-d.Events(); ok {
			t.Errorf("the channel gives %s", e.Type)
		}
		if _, err := d.EventFD(); err == nil {
			t.Error("a descriptor after Close")
		}
	}
}

// TestWakeUpIsPassedOn has events come faster than goroutines wake: one wake-up
// stands for two events, so whoever takes one must wake the next.
func TestWakeUpIsPassedOn(t *testing.T) {
	o := Options{Clock: NewSystemClock()}
	o.setDefaults()
	d := newEvents(t)
	d.keys = mem.NewKeys(o.Rand)
	d.options = o
	d.addQueue(nullLink{}, [6]byte{})
	d.channels.open = map[*CompChannel]struct{}{}
	c, err := d.CreateCompChannel()
	if err != nil {
		t.Fatal(err)
	}
	cq, err := d.CreateCQ(1, OnChannel(c))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		cq.notify()
		d.raise(AsyncEvent{Type: roce.EventCQErr, CQ: cq})
		d.raise(AsyncEvent{Type: roce.EventPortErr})
	}
	for i := range 2 {
		for name, some := range map[string]<-chan struct{}{
			"channel": c.signal.Ready(), "device": d.async.signal.Ready(),
		} {
			select {
			case <-some:
			default:
				t.Errorf("%s: nobody is woken for event %d", name, i)
			}
		}
		if _, ok := d.PollEvent(); !ok || c.PollEvent() != cq {
			t.Errorf("event %d does not come", i)
		}
	}
	if err := errors.Join(cq.AckEvents(2), cq.Close(), c.Close()); err != nil {
		t.Error(err)
	}
}
