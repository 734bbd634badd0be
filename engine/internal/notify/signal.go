package notify

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// A Signal says that events wait to be taken: to a goroutine by a channel, and
// to poll(2) by a descriptor. It does not hold the events. Whoever owns it holds a
// lock of its own for every method but Ready.
type Signal struct {
	ready chan struct{} // has room for one
	fd    int           // an eventfd that counts the events, -1 for none
}

// New returns a signal without a descriptor and without events.
func New() Signal { return Signal{make(chan struct{}, 1), -1} }

// Open makes the descriptor, with so many events waiting. There is none yet. The
// error is errors.ErrUnsupported where the system has no eventfd; the channel works
// there all the same.
func (s *Signal) Open(waiting int) error {
	fd, err := eventfd(waiting)
	if err != nil {
		return err
	}
	s.fd = fd
	return nil
}

// FD returns a descriptor that polls as readable while events wait, -1 without Open
// and after Close. Only the signal reads and closes it.
func (s *Signal) FD() int { return s.fd }

// Ready returns the channel that has a value when events wait, and may have one when
// none does. Whoever receives it takes one event, and calls Wake when more are left.
func (s *Signal) Ready() <-chan struct{} { return s.ready }

// one is what is written to add an event.
var one = binary.NativeEndian.AppendUint64(nil, 1)

// Raise adds an event. It does not block.
func (s *Signal) Raise() {
	s.Wake()
	if s.fd >= 0 {
		// It fails only when 2^64-2 events wait.
		_, _ = unix.Write(s.fd, one)
	}
}

// Lower takes n events away, which were raised. It does not block.
func (s *Signal) Lower(n int) {
	if s.fd < 0 {
		return
	}
	for range n {
		var value [8]byte
		// It fails only when somebody else read the descriptor.
		_, _ = unix.Read(s.fd, value[:])
	}
}

// Wake wakes one more goroutine: whoever leaves events behind calls it.
func (s *Signal) Wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Close gives the descriptor back. It is idempotent, and the channel stays open.
func (s *Signal) Close() error {
	if s.fd < 0 {
		return nil
	}
	fd := s.fd
	s.fd = -1
	return unix.Close(fd)
}
