package engine

import (
	"fmt"
	"sync/atomic"

	"xroce/roce"
)

// A Service is a package above the device that lives by the device's time and completions,
// as a connection manager does. It has the four calls of a machine: what came, when it
// wants to be called, that this time has come, and that it is over.
//
// Calls come one at a time, without any lock of the device, so a handler may take locks
// of its own, post work, poll CQs and modify QPs. It must not block, since all services of
// a device share a goroutine, and must do a bounded part of what there is: the rest is
// done in the next call. It must not add a service, nor close its handle or its device. On
// a device with a simulated clock CQ.Poll runs handlers, so who calls that outside of a
// handler must not hold a lock that handlers take.
//
// They run on a goroutine of the device, in both modes, and not on the thread that moves
// packets: handling a management datagram takes random numbers, maps and the resolution
// of addresses, and packets do not wait for those. Only on a device in direct mode with a
// clock that is not the machine's, a simulation, Device.Progress runs them after its
// round, in the order in which they were added, so that a run can be repeated.
type Service interface {
	// HandleCompletions is called when a CQ of the service may have completions, when
	// the service was woken, and once after it was added. It takes them (CQ.Take, since
	// who polls counts as driving the device) until there is nothing and then arms the
	// CQs, or reports that there may be more, and is called again after the other services.
	HandleCompletions(now roce.Time) (more bool)
	// NextDeadline returns when HandleDeadline wants to be called, false for never. It is
	// asked after each other call; Wake has it asked again.
	NextDeadline() (at roce.Time, ok bool)
	// HandleDeadline is called when that time has come, or later.
	HandleDeadline(now roce.Time)
	// HandleFailure is the last call, when the link has failed or the device is being
	// closed: err says why. It does not come after ServiceHandle.Close.
	HandleFailure(err error)
}

// A ServiceHandle is a service that was added to a device. Its methods are safe for
// concurrent use.
type ServiceHandle struct {
	device  *Device
	service Service
	cqs     []*CQ
	pending atomic.Bool // HandleCompletions is to be called

	// Under services.running:
	deadline roce.Time // what NextDeadline said last
	armed    bool      // that there is one
}

// AddService has the device call a service, from now on until ServiceHandle.Close, or
// until the device fails or is closed. The CQs are the service's alone: armed ones tell it
// and nobody else. It returns roce.ErrInvalid for a CQ that is closed, of another device,
// on a completion channel or of another service.
//
// With a service, a device in direct mode moves packets also while the application does not poll: a
// goroutine stands by, sleeping in the link, and stops that as soon as the application polls or
// waits.
func (d *Device) AddService(s Service, cqs ...*CQ) (*ServiceHandle, error) {
	h := &ServiceHandle{device: d, service: s, cqs: cqs}
	if err := h.attach(); err != nil {
		return nil, err
	}
	h.pending.Store(true)
	if err := d.services.add(h); err != nil {
		h.detach()
		return nil, err
	}
	return h, nil
}

// Simulated reports whether the device is in direct mode with a clock that is not the machine's:
// Device.Progress runs its services then.
func (d *Device) Simulated() bool { return d.services.inline }

// attach makes the CQs those of the service.
func (h *ServiceHandle) attach() error {
	d := h.device
	d.life.Lock()
	defer d.life.Unlock()
	for _, cq := range h.cqs {
		if err := cq.check(d); err != nil {
			return err
		}
		if cq.channel != nil || cq.service.Load() != nil {
			return fmt.Errorf("%w: the CQ is on a completion channel or of another service",
				roce.ErrInvalid)
		}
	}
	for _, cq := range h.cqs {
		cq.service.Store(h)
	}
	return nil
}

func (h *ServiceHandle) detach() {
	for _, cq := range h.cqs {
		cq.service.CompareAndSwap(h, nil)
	}
}

// Wake has HandleCompletions called and NextDeadline asked, soon: something changed that
// no completion tells. It never blocks, and may be called with any lock held, and in a
// handler.
func (h *ServiceHandle) Wake() {
	h.pending.Store(true)
	h.device.services.kick()
}

// Close ends the calls. When it returns no handler runs, so it must not be called in one,
// nor with a lock that handlers take. It is idempotent, may come after Device.Close, and
// the error is always nil: a handle is an io.Closer.
func (h *ServiceHandle) Close() error {
	h.device.services.remove(h)
	h.detach()
	return nil
}
