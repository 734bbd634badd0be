package notify

import (
	"testing"

	"golang.org/x/sys/unix"
)

// readable reports whether the descriptor of a signal polls as readable.
func readable(t *testing.T, s *Signal) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(s.FD()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// woken takes the value of Ready, if there is one.
func woken(s *Signal) bool {
	select {
	case <-s.Ready():
		return true
	default:
		return false
	}
}

// TestSignal counts events up and down: the descriptor is readable while there are
// some, and the channel has one value for all of them.
func TestSignal(t *testing.T) {
	s := New()
	if s.FD() != -1 || woken(&s) {
		t.Error("a new signal has a descriptor or an event")
	}
	s.Raise()
	if !woken(&s) {
		t.Error("nobody is woken without a descriptor")
	}
	if err := s.Open(1); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Raise()
	s.Raise()
	if !woken(&s) || woken(&s) {
		t.Error("two events are not one value")
	}
	s.Lower(2)
	if !readable(t, &s) {
		t.Error("the event from before the descriptor is lost")
	}
	s.Lower(1)
	if readable(t, &s) {
		t.Error("the descriptor is readable without an event")
	}
	s.Wake()
	if !woken(&s) || readable(t, &s) {
		t.Error("Wake does not wake, or counts an event")
	}
}

// TestClose leaves a signal that still takes calls, without a descriptor.
func TestClose(t *testing.T) {
	s := New()
	if err := s.Open(0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s.Raise()
	s.Lower(1)
	if s.FD() != -1 || !woken(&s) {
		t.Error("a closed signal has a descriptor, or does not wake")
	}
}
