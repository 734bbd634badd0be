package engine

import (
	"fmt"
	"sync/atomic"

	"xroce/roce/mem"
)

// A PD is a protection domain of a device (struct ibv_pd): keys of one are of no
// use to QPs of another. It is safe for concurrent use.
type PD struct {
	core   mem.Domain
	device *Device
	number uint32 // in the registry
	// users are the regions, windows, QPs and SRQs of the domain, pdClosed after Close.
	users atomic.Int64
}

const pdClosed = -1

// AllocPD makes a protection domain (ibv_alloc_pd). It cannot fail.
func (d *Device) AllocPD() *PD {
	p := &PD{device: d}
	d.registry.add(resourcePD, p, &p.number)
	return p
}

// Close ends the domain (ibv_dealloc_pd). It fails with ErrBusy while a region, a
// memory window, a QP or an SRQ is of it; address handles do not count, because
// nothing destroys them. It is idempotent.
func (p *PD) Close() error {
	if p.users.CompareAndSwap(0, pdClosed) || p.users.Load() == pdClosed {
		p.device.registry.remove(resourcePD, p, p.number)
		return nil
	}
	return fmt.Errorf("%w: regions, windows, QPs or SRQs are of the protection domain", ErrBusy)
}

// retain counts a user in, if the domain is an open one of this device.
func (p *PD) retain(d *Device) error {
	for {
		if err := p.check(d); err != nil {
			return err
		}
		if n := p.users.Load(); n != pdClosed && p.users.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// release counts a user out.
func (p *PD) release() { p.users.Add(-1) }
