package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"xroce/roce"
)

// services are those of a device, and the goroutine that calls them, which is there as
// long as there is a service.
type services struct {
	device *Device
	inline bool // in a simulation: Device.Progress calls them, and there is no goroutine

	// life is held while a service comes or goes, and running while one is called. life
	// comes first, and both before the locks of the device.
	life    sync.Mutex
	running sync.Mutex
	list    []*ServiceHandle // under running
	ended   bool             // HandleFailure was called; under running
	any     atomic.Bool      // the list is not empty

	stop    chan struct{} // ends the goroutine, nil when there is none; under life
	stopped sync.WaitGroup
	kicked  chan struct{} // has a value when the goroutine is to look again

	standby standby
}

func (s *services) init(d *Device) {
	_, real := d.options.Clock.(systemClock)
	s.device, s.inline = d, d.direct && !real
	s.kicked = make(chan struct{}, 1)
}

// add begins to call a service.
func (s *services) add(h *ServiceHandle) error {
	s.life.Lock()
	defer s.life.Unlock()
	s.running.Lock()
	defer s.running.Unlock()
	if err := s.device.failure(); err != nil {
		return err
	}
	s.list = append(slices.Clone(s.list), h)
	s.any.Store(true)
	if s.stop == nil && !s.inline {
		stop := make(chan struct{})
		s.stop = stop
		s.stopped.Go(func() { s.loop(stop) })
	}
	s.kick()
	return nil
}

// remove ends the calls of a service, and the goroutine with the last.
func (s *services) remove(h *ServiceHandle) {
	s.life.Lock()
	defer s.life.Unlock()
	s.running.Lock()
	s.list = without(s.list, h)
	none := len(s.list) == 0
	s.any.Store(!none)
	s.running.Unlock()
	if none {
		s.endLoop()
	}
}

// endLoop ends the goroutine. The caller holds life, and not running.
func (s *services) endLoop() {
	if s.stop != nil {
		close(s.stop)
		s.stop = nil
		s.kick()
		s.stopped.Wait()
	}
}

// halt ends the goroutine because the device is being closed.
func (s *services) halt() {
	s.life.Lock()
	defer s.life.Unlock()
	s.endLoop()
}

// progress runs those that are due in a simulation, and reports whether there were any.
// In a handler, which polls and so makes progress, it does nothing.
func (s *services) progress() (worked bool) {
	if !s.inline || !s.any.Load() {
		return false
	}
	if err := s.device.failure(); err != nil {
		s.fail(err)
		return true
	}
	if !s.running.TryLock() {
		return false
	}
	defer s.running.Unlock()
	now := s.device.options.Clock.Now()
	for _, h := range s.list {
		if h.due(now) {
			worked = h.run(now) || worked
		}
	}
	return worked
}

// nextDeadline is when the next call is due in a simulation.
func (s *services) nextDeadline() (roce.Time, bool) {
	if !s.inline || !s.any.Load() || !s.running.TryLock() {
		return 0, false
	}
	defer s.running.Unlock()
	return dueAt(s.list, s.device.options.Clock.Now())
}
