package engine

import (
	"errors"

	"xroce/engine/pager"
	"xroce/roce"
	"xroce/roce/mem"
)

// An MR is a registered memory region (struct ibv_mr). Its methods are safe for
// concurrent use.
type MR struct {
	region *mem.Region
	device *Device
	pd     *PD
	odp    *pager.Region // nil of a region without on-demand paging
}

// RegMR registers buf (ibv_reg_mr), which then can be named by address and key. The slice
// must not be freed or moved before Deregister; Go's own memory is not.
// Writing to it while a peer reads or writes it is a race, as with any RDMA.
func (d *Device) RegMR(pd *PD, buf []byte, access mem.Access) (*MR, error) {
	if err := pd.use(d); err != nil {
		return nil, err
	}
	region, err := d.keys.Register(&pd.domain, buf, access)
	if err != nil {
		pd.unuse()
		return nil, err
	}
	return &MR{region: region, device: d, pd: pd}, nil
}

// LKey returns the key for work requests.
func (m *MR) LKey() uint32 { return m.region.LKey() }

// RKey returns the key for the peer.
func (m *MR) RKey() uint32 { return m.region.RKey() }

// Addr returns the address by which work requests and the peer name the first
// byte.
func (m *MR) Addr() uint64 { return m.region.Addr() }

// Bytes returns the registered memory, nil of a region that was made of addresses.
func (m *MR) Bytes() []byte {
	if m.odp != nil {
		return m.odp.Bytes()
	}
	return m.region.Bytes()
}

// SGE names n bytes of the region, off bytes behind its beginning.
func (m *MR) SGE(off, n int) roce.SGE {
	return roce.SGE{Addr: m.Addr() + uint64(off), Length: uint32(n), LKey: m.LKey()}
}

// Validate gives the region back a key after a peer's SEND with invalidate, or
// LOCAL_INV, took it out of use: the old one with other low 8 bits. The error is
// mem.ErrNotInvalidated when nobody did, mem.ErrNotRegistered after Deregister.
func (m *MR) Validate(variant uint8) error { return m.device.keys.Validate(m.region, variant) }

// Deregister takes the keys out of use. When it returns without an error, no packet
// reads or writes the memory any more; work requests that name it fail. It is
// idempotent. The error is mem.ErrBusy while a memory window is bound to the region
// or a layout refers to it: then nothing happened.
func (m *MR) Deregister() error {
	switch err := m.device.keys.Deregister(m.region); {
	case errors.Is(err, mem.ErrNotRegistered):
		return nil
	case err != nil:
		return err
	}
	m.pd.unuse()
	m.device.settle()
	if m.odp != nil {
		m.device.forgetODP(m)
	}
	return nil
}

// settle waits until what looked a key up before has done its work. All copying
// happens under the progress lock, so passing through it once is waiting for that.
func (d *Device) settle() {
	d.queue.mu.Lock()
	//lint:ignore SA2001 the empty critical section is the wait
	d.queue.mu.Unlock()
}
