package engine

import (
	"container/list"
	"slices"
	"sync"

	"xroce/engine/internal/notify"
	"xroce/roce"
)

// An AsyncEvent is an asynchronous event with what it is about (struct
// ibv_async_event): a QP, a CQ, an SRQ, or the device and its port when all are
// nil.
type AsyncEvent struct {
	Type roce.Event
	QP   *QP
	CQ   *CQ
	SRQ  *SRQ
}

// asyncEvents are the events of a device that were not taken yet. An object is in
// the list at most once and each type of event at most once for it, however
// often it happens, so the list is bounded by what exists.
type asyncEvents struct {
	mu      sync.Mutex
	sources list.List // of *eventSource, those with events
	waiting int       // events in all
	signal  notify.Signal
	closed  bool
	done    chan struct{} // closed with the device
	adapter chan AsyncEvent
	running sync.WaitGroup
}

// An eventSource is an object that had an event.
type eventSource struct {
	about AsyncEvent // Type is of no meaning
	// types are in the order in which they happened last: of a port that went
	// down and came back, the last says how it is.
	types   []roce.Event
	element *list.Element // nil when not in the list
	// onFatal is called when a QP has roce.EventQPFatal; nil for nobody.
	onFatal func()
	// onEstablished is called with the first packet of a QP's connection; nil for nobody.
	onEstablished func()
}

func (a *asyncEvents) init() {
	a.signal, a.done = notify.New(), make(chan struct{})
}

// raise notes that e happened, for readers of the device's events. It never
// blocks and is safe for concurrent use; events about a QP or a CQ need the
// progress lock, under which these are closed.
func (d *Device) raise(e AsyncEvent) {
	place := &d.events
	switch {
	case e.QP != nil:
		if e.QP.closed {
			return
		}
		place = &e.QP.control.events
	case e.CQ != nil:
		if e.CQ.closed {
			return
		}
		place = &e.CQ.events
	case e.SRQ != nil:
		if e.SRQ.closed {
			return
		}
		place = &e.SRQ.events
	}
	d.async.raise(place, e)
}

// raise adds an event to its source, which it makes at the first one.
func (a *asyncEvents) raise(place **eventSource, e AsyncEvent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	if *place == nil {
		*place = &eventSource{about: e}
	}
	s := *place
	if s.onFatal != nil && e.Type == roce.EventQPFatal {
		s.onFatal()
	}
	if i := slices.Index(s.types, e.Type); i >= 0 {
		s.types = append(slices.Delete(s.types, i, i+1), e.Type)
		return
	}
	s.types = append(s.types, e.Type)
	if s.element == nil {
		s.element = a.sources.PushBack(s)
	}
	a.waiting++
	a.signal.Raise()
}

// source changes a source, which it makes at the first time.
func (a *asyncEvents) source(place **eventSource, about AsyncEvent, change func(*eventSource)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if *place == nil {
		*place = &eventSource{about: about}
	}
	change(*place)
}

// established calls who wants to know that the first packet of a connection came.
func (a *asyncEvents) established(place **eventSource) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := *place; s != nil && s.onEstablished != nil {
		s.onEstablished()
	}
}

// take returns the oldest event of the source whose turn it is.
func (a *asyncEvents) take() (AsyncEvent, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == 0 {
		return AsyncEvent{}, false
	}
	s := a.sources.Front().Value.(*eventSource)
	e := s.about
	e.Type = s.types[0]
	s.types = slices.Delete(s.types, 0, 1)
	if len(s.types) == 0 {
		a.sources.Remove(s.element)
		s.element = nil
	} else {
		a.sources.MoveToBack(s.element)
	}
	a.signal.Lower(1)
	if a.waiting--; a.waiting > 0 {
		a.signal.Wake()
	}
	return e, true
}

// forget drops the events of a source that is no more; nil is one without.
func (a *asyncEvents) forget(s *eventSource) {
	if s == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.element == nil {
		return
	}
	a.sources.Remove(s.element)
	a.waiting -= len(s.types)
	a.signal.Lower(len(s.types))
	s.element, s.types = nil, nil
}

// close drops all events and ends the adapter.
func (a *asyncEvents) close() error {
	a.mu.Lock()
	a.closed, a.waiting = true, 0
	a.sources.Init()
	close(a.done)
	err := a.signal.Close()
	a.mu.Unlock()
	a.running.Wait()
	return err
}

// run moves events to the channel of Device.Events until the device closes.
func (a *asyncEvents) run() {
	defer close(a.adapter)
	for {
		e, ok := a.take()
		if !ok {
			select {
			case <-a.signal.Ready():
				continue
			case <-a.done:
				return
			}
		}
		select {
		case a.adapter <- e:
		case <-a.done:
			return
		}
	}
}

// PollEvent takes an asynchronous event if there is one (ibv_get_async_event,
// not blocking). Each event goes to one taker, by this or by Events. One that
// happens again before it is taken is not taken twice. The events of one
// object come in the order in which they happened last.
func (d *Device) PollEvent() (AsyncEvent, bool) { return d.async.take() }

// EventFD returns a descriptor that polls as readable as long as PollEvent has
// an event (ibv_context.async_fd). It is for poll(2) only: the device reads it,
// and closes it. The error is errors.ErrUnsupported where the system has no eventfd.
func (d *Device) EventFD() (int, error) {
	a := &d.async
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return -1, ErrClosed
	}
	if a.signal.FD() < 0 {
		if err := a.signal.Open(a.waiting); err != nil {
			return -1, err
		}
	}
	return a.signal.FD(), nil
}

// Events returns a channel of the device's asynchronous events, which Close
// closes. From the first call on a goroutine takes them; it may hold one whose
// object is closed before it is received.
func (d *Device) Events() <-chan AsyncEvent {
	a := &d.async
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.adapter == nil {
		a.adapter = make(chan AsyncEvent)
		if a.closed {
			close(a.adapter)
		} else {
			a.running.Go(a.run)
		}
	}
	return a.adapter
}
