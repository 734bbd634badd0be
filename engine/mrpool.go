package engine

import (
	"sync"

	"xroce/roce/mem"
)

// maxPooled is how many regions a pool keeps that nobody has.
const maxPooled = 64

// An MRPool makes regions for memory that is registered for a short time, again and again
// (ib_mr_pool_get of the kernel). Each has a key of its own, drawn anew, as with RegMR; what is
// used again is our own memory, so that to register allocates nothing. It is safe for concurrent
// use. The zero value is ready.
type MRPool struct {
	mu   sync.Mutex
	free []*MR // deregistered
}

// RegMR is Device.RegMR, with a region that is given back by MR.Release.
func (p *MRPool) RegMR(d *Device, pd *PD, buf []byte, access mem.Access) (*MR, error) {
	return p.register(d, pd, mem.MemoryOf(buf, access), access)
}

// RegSG is Device.RegSG, likewise.
func (p *MRPool) RegSG(d *Device, pd *PD, slices [][]byte, access mem.Access) (*MR, error) {
	return p.register(d, pd, mem.Memory{Slices: slices}, access)
}

// register registers memory of any sort that stays.
func (p *MRPool) register(d *Device, pd *PD, of mem.Memory, access mem.Access) (*MR, error) {
	if m := p.take(d); m != nil {
		err := m.again(pd, of, access)
		if err != nil {
			p.keep(m)
			return nil, err
		}
		return m, nil
	}
	m, err := d.register(pd, of, access)
	if err != nil {
		return nil, err
	}
	m.pool = p
	return m, nil
}

// Release is Deregister, and gives a region of an MRPool back, if there is no error: then it must
// not be used any more. A second Release before somebody else has it does nothing.
func (m *MR) Release() error {
	if err := m.Deregister(); err != nil {
		return err
	}
	if m.pool != nil && m.forget() {
		m.pool.keep(m)
	}
	return nil
}

// forget lets go of what a region was that was deregistered, and reports whether it had not yet.
func (m *MR) forget() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pd == nil {
		return false
	}
	m.device.keys.Forget(m.core)
	m.pd = nil
	return true
}

// take returns a region of a device, nil when there is none.
func (p *MRPool) take(d *Device) *MR {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.free) - 1; i >= 0; i-- {
		if m := p.free[i]; m.device == d {
			last := len(p.free) - 1
			p.free[i], p.free[last] = p.free[last], nil
			p.free = p.free[:last]
			return m
		}
	}
	return nil
}

// keep holds a region for a later call, if there are not many.
func (p *MRPool) keep(m *MR) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < maxPooled {
		p.free = append(p.free, m)
	}
}

// again registers memory with a region that was deregistered by a pool.
func (m *MR) again(pd *PD, of mem.Memory, access mem.Access) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := pd.retain(m.device); err != nil {
		return err
	}
	err := m.device.keys.RegisterAgain(m.core, &pd.core, of, access)
	if err != nil {
		pd.release()
		return err
	}
	m.pd = pd
	m.pdn.Store(pd.number)
	m.device.registry.add(resourceMR, m, &m.number)
	return nil
}
