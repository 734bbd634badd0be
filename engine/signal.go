package engine

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// A signal says that events wait to be taken: to a goroutine by a channel, and
// to poll(2) by a descriptor. Whoever owns it holds a lock of its own for every
// method.
type signal struct {
	// some has a value when events wait, and may have one when none does.
	some chan struct{}
	fd   int // an eventfd that counts the events, -1 for none
}

func newSignal() signal { return signal{make(chan struct{}, 1), -1} }

// open makes the descriptor, with so many events waiting.
func (s *signal) open(waiting int) error {
	fd, err := unix.Eventfd(uint(waiting), unix.EFD_CLOEXEC|unix.EFD_NONBLOCK|unix.EFD_SEMAPHORE)
	if err != nil {
		return fmt.Errorf("engine: eventfd: %w", err)
	}
	s.fd = fd
	return nil
}

// one is what is written to add an event.
var one = binary.NativeEndian.AppendUint64(nil, 1)

// raise adds an event. It does not block.
func (s *signal) raise() {
	s.again()
	if s.fd >= 0 {
		// It fails only when 2^64-2 events wait.
		_, _ = unix.Write(s.fd, one)
	}
}

// lower takes n events away.
func (s *signal) lower(n int) {
	if s.fd < 0 {
		return
	}
	for range n {
		var value [8]byte
		// It fails only when somebody else read the descriptor.
		_, _ = unix.Read(s.fd, value[:])
	}
}

// again wakes one more goroutine: whoever leaves events behind calls it.
func (s *signal) again() {
	select {
	case s.some <- struct{}{}:
	default:
	}
}

// close gives the descriptor back.
func (s *signal) close() error {
	if s.fd < 0 {
		return nil
	}
	fd := s.fd
	s.fd = -1
	return unix.Close(fd)
}
