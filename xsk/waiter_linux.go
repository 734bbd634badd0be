package xsk

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// The states of a Waiter.
//
//	           Wait                     Wake
//	running ----------> sleeping ----------------> woken   writes the event
//	   |  ^                |                         |
//	   |  +----------------+ poll returned           |
//	   |  +------------------------------------------+ Wait returns
//	   |                 Wake
//	   +-----------------------------------------> woken   no system call
const (
	wakeRunning  = iota // no goroutine waits
	wakeSleeping        // Wait is in poll or about to be
	wakeWoken           // Wake came and Wait has not returned for it yet
)

// deviceCheck bounds one poll. The deletion of the device wakes poll in the
// kernel, but xsk_poll then has nothing to report and poll sleeps on (v6.18): a
// receive call tells. It is made whenever a poll ends with nothing, too.
const deviceCheck = time.Second

// keepCPUPoll is the length of the first poll of a Wait that keeps its processor.
// Under traffic the next frame comes sooner. It is longer than a tick: a timer that
// would be the next to expire is set in hardware, which on a virtual machine
// costs as much as receiving a burst.
const keepCPUPoll = 5 * time.Millisecond

// A Waiter is the sleeping half of a Link on AF_XDP sockets: one goroutine
// waits for frames, any goroutine wakes it. It asks the kernel alone whether there
// is a frame: the rings belong to whoever moves frames, who may be another one.
// Socket has one; other owners of an AF_XDP descriptor can have one, too.
type Waiter struct {
	kernel  Kernel
	fds     []PollFD // the sockets, which are not ours, the event, and another one
	event   int
	keepCPU bool // the first poll of a Wait keeps its processor: Config.Dedicated
	several bool // there are others
	state   atomic.Uint32
	other   atomic.Int32 // the descriptor that WakeOn named plus one, 0 for none

	// closing guards the event's descriptor against a Wake that comes with or
	// after Close.
	closing sync.RWMutex
	closed  bool
}

// NewWaiter makes a Waiter for sockets. It makes one descriptor.
func NewWaiter(k Kernel, sockets ...int) (*Waiter, error) {
	event, err := k.Event()
	if err != nil {
		return nil, err
	}
	w := &Waiter{kernel: k, event: event, several: runtime.GOMAXPROCS(0) > 1}
	for _, fd := range append(slices.Clone(sockets), event, -1) {
		w.fds = append(w.fds, PollFD{FD: int32(fd), Events: unix.POLLIN})
	}
	return w, nil
}

// Wait is Link.Wait. A frame that came before the poll ends it like a later one.
// It returns ENODEV when the device was deleted, within a
// second of that, and otherwise what poll gives.
func (w *Waiter) Wait(timeout time.Duration) error {
	if !w.state.CompareAndSwap(wakeRunning, wakeSleeping) {
		w.state.Store(wakeRunning) // woken: this Wait is the one it ends
		return nil
	}
	defer w.state.Store(wakeRunning)
	var end time.Time
	if timeout > 0 {
		end = time.Now().Add(timeout)
	}
	other := int(w.other.Load()) - 1
	for keepCPU := w.keepCPU || other >= 0 && w.several; ; keepCPU = false {
		slice := deviceCheck
		if keepCPU {
			slice = keepCPUPoll
		}
		if timeout >= 0 {
			slice = min(slice, timeout)
		}
		w.fds[len(w.fds)-1].FD = int32(other)
		ready, err := w.kernel.Poll(w.fds, slice, keepCPU)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case err == nil && ready != (Ready{}):
			return w.waited(ready)
		case err == nil && w.gone():
			return unix.ENODEV
		case err == nil && timeout == 0:
			return nil
		case timeout > 0:
			if timeout = time.Until(end); timeout <= 0 {
				return nil
			}
		}
	}
}

// gone asks with a receive call whether the device of a socket was deleted.
func (w *Waiter) gone() bool {
	for _, f := range w.fds[:len(w.fds)-2] {
		if w.kernel.Recv(int(f.FD)) == unix.ENXIO {
			return true
		}
	}
	return false
}

// waited cleans up after poll. A Wake that runs into the end of the wait may
// write the event after it was drained here; the next Wait then returns early
// once, which its callers must bear anyway.
func (w *Waiter) waited(ready Ready) error {
	if ready.Event {
		if err := w.kernel.Drain(w.event); err != nil {
			return err
		}
	}
	if ready.Gone {
		return unix.ENODEV
	}
	return nil
}

// WakeOn is FDWaiter.WakeOn.
func (w *Waiter) WakeOn(fd int) {
	w.other.Store(int32(fd) + 1)
	w.Wake()
}

// Wake is Link.Wake. It makes a system call only when a Wait may be sleeping,
// and only once for it. After Close it does nothing.
func (w *Waiter) Wake() {
	if w.state.Swap(wakeWoken) != wakeSleeping {
		return
	}
	w.closing.RLock()
	defer w.closing.RUnlock()
	if w.closed {
		return
	}
	// The event can be full, then it is readable; no other failure is possible
	// on a descriptor that is ours.
	_ = w.kernel.Notify(w.event)
}

// Close closes the event. It is idempotent, and may come while Wake runs, but
// not while Wait does.
func (w *Waiter) Close() error {
	w.closing.Lock()
	defer w.closing.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	return w.kernel.Close(w.event)
}
