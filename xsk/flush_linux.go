package xsk

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Flush implements Link. Each send call in copy mode handles up to TxBudget
// descriptors. What it may come back with, and what is done about it
// (kernel net/xdp/xsk.c v6.18, __xsk_generic_xmit and xsk_sendmsg):
//
//	0          all sent, or the driver woken        done when the ring is empty
//	EAGAIN     budget, send buffer, completion      take completions; again as
//	           ring or driver queue used up         long as something moves
//	EBUSY      the device dropped one frame; it     count it as lost on the
//	           completes like the others            wire; go on with the next
//	ENOBUFS    no memory for a buffer               stop, nil: call Flush later
//	ENETDOWN   interface down; frames stay queued   stop, the error
//	EINTR      not given to a non-blocking call     again
//	ENXIO      device deleted                       stop, the error
//	EINVAL     ring poisoned by bad metadata        stop, the error
//
// At most two calls are made for each queued descriptor.
func (s *Socket) Flush() error {
	if s.closed {
		return ErrClosed
	}
	s.reap()
	before := s.tx.unsent()
	if before == 0 || !s.mustSend() {
		return nil
	}
	for calls := 2 * before; calls > 0; calls-- {
		s.stats.TxKicks++
		errno := s.kernel.Send(s.fd)
		left := s.tx.unsent()
		moved := left < before
		before = left
		switch errno {
		case 0:
			// In zero-copy mode the driver takes the frames in its own time.
		case unix.EAGAIN:
			s.stats.TxAgain++
			moved = s.reap() > 0 || moved
		case unix.EBUSY:
			s.stats.TxBusy++
			moved = true // the kernel may publish its index later
		case unix.EINTR:
			moved = true
		default:
			return s.sendFailed(errno)
		}
		if left == 0 || !moved {
			return nil
		}
	}
	return nil
}

// sendFailed counts an errno that stops sending and makes it an error, unless
// it passes by itself.
func (s *Socket) sendFailed(errno syscall.Errno) error {
	switch errno {
	case unix.ENOBUFS:
		s.stats.TxNoBufs++
		return nil
	case unix.ENETDOWN:
		s.stats.TxNetDown++
		// A known link state, perhaps on every burst: no allocation for it.
		return errno
	}
	return s.fail("send", errno)
}

// Pending implements Link. In zero-copy mode frames that the driver takes by
// itself are not pending.
func (s *Socket) Pending() bool { return s.tx.unsent() != 0 && s.mustSend() }

// mustSend reports whether what is queued leaves by a send call only: the driver asks for
// one, or prefers busy polling and does its work in our calls, whatever it asks for.
func (s *Socket) mustSend() bool { return s.busyPoll || s.tx.needWakeup() }

// Drained implements Drainer: the kernel completes a frame when the device is done with it.
func (s *Socket) Drained() bool {
	s.reap()
	return s.outstanding == 0
}

// kickZeroCopy calls a zero-copy driver that asks to be called before it completes what
// it has sent.
func (s *Socket) kickZeroCopy() {
	if s.info.ZeroCopy && s.outstanding > 0 && !s.closed && s.mustSend() {
		s.stats.TxKicks++
		s.kernel.Send(s.fd) // Flush reports what persists
	}
}

// wakeRx calls a driver that ran out of frames to receive into, or one that
// only works while it is polled.
func (s *Socket) wakeRx() {
	if s.closed || !s.busyPoll && !s.fill.needWakeup() {
		return
	}
	s.stats.RxKicks++
	s.kernel.Recv(s.fd) // Wait and Flush report what persists
}
