package engine

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

// fail tells all services that the device is of no more use, once.
func (s *services) fail(err error) {
	if !s.any.Load() {
		return
	}
	s.running.Lock()
	defer s.running.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	for _, h := range s.list {
		h.service.HandleFailure(err)
	}
	s.list = nil
	s.any.Store(false)
}

// kick has the goroutine look again. It never blocks.
func (s *services) kick() {
	select {
	case s.kicked <- struct{}{}:
	default:
	}
	if s.standby.asleep.Load() {
		s.device.queues[0].link.Wake()
	}
}

// pass runs every service once. It returns when the next call is due.
func (s *services) pass(now roce.Time) (next roce.Time, any bool) {
	s.running.Lock()
	defer s.running.Unlock()
	for _, h := range s.list {
		h.run(now)
	}
	return dueAt(s.list, now)
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

// loop calls the services until stop is closed or the device fails.
func (s *services) loop(stop <-chan struct{}) {
	d := s.device
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-d.failed:
			s.fail(d.failure())
			return
		default:
		}
		polled := s.standby.polled.Swap(false)
		now := d.options.Clock.Now()
		next, any := s.pass(now)
		// In direct mode handlers poll, too; that does not count as driving the device.
		s.standby.polled.Store(false)
		if any && next <= now {
			continue
		}
		wait := nap{s: s, stop: stop, timer: timer, until: next, bounded: any}
		switch {
		case !d.direct:
			wait.sleep()
		case polled:
			wait.sleepAtMost(now + standbyPause)
		case s.standby.waiting.Load() > 0:
			wait.sleepYielding()
		case !d.standBy(stop, next, any):
			wait.sleepAtMost(now + standbyPause)
		}
	}
}

// A nap is how the goroutine sleeps outside of the link.
type nap struct {
	s       *services
	stop    <-chan struct{}
	timer   *time.Timer
	until   roce.Time
	bounded bool // until is when it ends
}

// sleep waits for a kick, or until it is time.
func (n nap) sleep() {
	wait := time.Hour
	if n.bounded {
		wait = max(0, time.Duration(n.until-n.s.device.options.Clock.Now()))
	}
	n.timer.Reset(wait)
	select {
	case <-n.s.kicked:
	case <-n.timer.C:
	case <-n.stop:
	case <-n.s.device.failed:
	}
}

// sleepAtMost is sleep that ends at a time in any case.
func (n nap) sleepAtMost(at roce.Time) {
	if !n.bounded || at < n.until {
		n.until, n.bounded = at, true
	}
	n.sleep()
}

// sleepYielding is sleep that ends when nobody waits in direct mode any more.
func (n nap) sleepYielding() {
	b := &n.s.standby
	b.yielding.Store(true)
	defer b.yielding.Store(false)
	if b.waiting.Load() > 0 {
		n.sleep()
	}
}
