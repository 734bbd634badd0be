package xsk

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// The states of Socket.wake.
//
//	           Wait                     Wake
//	running ----------> sleeping ----------------> woken   writes the event
//	   |  ^                |                         |
//	   |  +----------------+ poll returned           |
//	   |  +------------------------------------------+ Wait returns
//	   |                 Wake
//	   +-----------------------------------------> woken   no system call
const (
	wakeRunning  = iota // nobody waits
	wakeSleeping        // Wait is in poll or about to be
	wakeWoken           // Wake came and Wait has not returned for it yet
)

// deviceCheck bounds one poll. The deletion of the device wakes poll in the
// kernel, but xsk_poll then has nothing to report and poll sleeps on (v6.18): a
// receive call tells. It is made whenever a poll ends with nothing, too.
const deviceCheck = time.Second

// Wait implements Link. It returns at once when a frame is there. The kernel
// sends queued frames of a copy-mode socket as a side effect. It returns an
// Error with ENODEV when the device was deleted, within a second of that.
func (s *Socket) Wait(timeout time.Duration) error {
	if s.closed {
		return ErrClosed
	}
	if !s.wake.CompareAndSwap(wakeRunning, wakeSleeping) {
		s.wake.Store(wakeRunning) // woken: this Wait is the one it ends
		return nil
	}
	defer s.wake.Store(wakeRunning)
	s.reap() // forwarded frames come home to the fill ring
	// A frame that came before this look is seen here, a later one ends poll.
	if s.rx.ready() {
		return nil
	}
	var end time.Time
	if timeout > 0 {
		end = time.Now().Add(timeout)
	}
	for {
		slice := timeout
		if slice < 0 || slice > deviceCheck {
			slice = deviceCheck
		}
		ready, err := s.kernel.Poll(s.fd, s.event, slice)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return s.fail("poll", err)
		case err == nil && ready != (Ready{}):
			return s.waited(ready)
		case err == nil && s.kernel.Recv(s.fd) == unix.ENXIO:
			return s.waited(Ready{Gone: true})
		case err == nil && timeout == 0:
			return nil
		case timeout > 0:
			if timeout = time.Until(end); timeout <= 0 {
				return nil
			}
		}
	}
}

// waited cleans up after poll. A Wake that ran into the end of the wait may
// write the event after it was drained here; the next Wait then returns early
// once, which its callers must bear anyway.
func (s *Socket) waited(ready Ready) error {
	if ready.Event {
		if err := s.kernel.Drain(s.event); err != nil {
			return s.fail("read eventfd", err)
		}
	}
	if ready.Gone {
		return s.fail("poll", unix.ENODEV)
	}
	return nil
}

// Wake implements Link. It makes a system call only when a Wait may be
// sleeping, and only once for it. After Close it does nothing.
func (s *Socket) Wake() {
	if s.wake.Swap(wakeWoken) != wakeSleeping {
		return
	}
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.gone {
		return
	}
	// The event can be full, then it is readable; no other failure is possible
	// on a descriptor that this socket owns.
	_ = s.kernel.Notify(s.event)
}
