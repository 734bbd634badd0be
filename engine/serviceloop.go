package engine

import (
	"time"

	"xroce/roce"
)

// loop calls the services until stop is closed or the device fails.
func (s *services) loop(stop <-chan struct{}) {
	d := s.device
	timer := time.NewTimer(0)
	defer timer.Stop()
	var left roce.Time // until when the device is left to a caller that polled, kicked or not
	for {
		select {
		case <-stop:
			return
		case <-d.failed:
			s.fail(d.failure())
			return
		default:
		}
		now := d.options.Clock.Now()
		if s.standby.polled.Swap(false) {
			left = now + standbyPause
		}
		next, any := s.pass(now)
		d.SendPosted() // also while the device is left to somebody who polls
		if any && next <= now {
			continue
		}
		wait := nap{s: s, stop: stop, timer: timer, until: next, bounded: any}
		switch {
		case !d.direct:
			wait.sleep()
		case now < left:
			wait.sleepAtMost(left)
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

// pass runs every service once. It returns when the next call is due.
func (s *services) pass(now roce.Time) (next roce.Time, any bool) {
	s.running.Lock()
	defer s.running.Unlock()
	for _, h := range s.list {
		h.run(now)
	}
	return dueAt(s.list, now)
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
