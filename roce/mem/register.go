package mem

import (
	"errors"
	"fmt"
)

// Errors of registration, in the order of the checks.
var (
	ErrNoDomain = errors.New("mem: a region needs a protection domain")
	ErrAccess   = errors.New("mem: access flags are not valid")
	ErrRange    = errors.New("mem: the region would wrap around the address space")
)

// Memory is what a region is made of: Bytes, or Slices, or Length bytes from Start on of
// the Pager's, or Length bytes from Addr on of the region Of.
type Memory struct {
	// Bytes stay in place and must not be freed before Deregister. None are
	// allowed: such a region grants nothing but zero-length accesses.
	Bytes []byte
	// Slices are memory like Bytes, laid end to end, of which those without bytes are
	// nothing (ib_map_mr_sg of the kernel). They are copied, not kept. A word is in one
	// of them, or FaultMisaligned.
	Slices [][]byte
	// Guard makes every access to Bytes, nil for bytes that stay.
	Guard Guard

	Pager         Pager
	Start, Length uint64

	// Of is a region of these keys, of any protection domain and any sort of memory, of which a
	// part gets a key more: who registers owns both. As for a layout no right of peers is needed
	// there, but LOCAL_WRITE for all that writes. Until the part is deregistered the region stays
	// as it is: see ErrBusy. Nothing else may be set beside it.
	Of *Region

	// Addr is the address by which requests name the first byte. A region with
	// ZERO_BASED has 0 here.
	Addr uint64
	// Sync makes the memory outlast a loss of power, nil when it cannot. Without
	// it FLUSH_PERSISTENT is not valid.
	Sync Sync
}

// Register makes a region of b, whose address is that of the memory, or 0 with
// ZERO_BASED. REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE, as in ibv_reg_mr.
// Flags that verbs calls optional and that are not known here are dropped.
func (k *Keys) Register(d *Domain, b []byte, access Access) (*Region, error) {
	return k.RegisterMemory(d, MemoryOf(b, access), access)
}

// MemoryOf is the memory that Register makes a region of.
func MemoryOf(b []byte, access Access) Memory {
	m := Memory{Bytes: b}
	if access&ZeroBased == 0 {
		m.Addr = address(b)
	}
	return m
}

// RegisterAt is Register with the address of the first byte chosen by the
// caller (ibv_reg_mr_iova).
func (k *Keys) RegisterAt(d *Domain, b []byte, addr uint64, access Access) (*Region, error) {
	return k.RegisterMemory(d, Memory{Bytes: b, Addr: addr}, access)
}

// RegisterMemory is Register for memory of any sort.
func (k *Keys) RegisterMemory(d *Domain, m Memory, access Access) (*Region, error) {
	r := &Region{}
	if m.Of != nil {
		r.view.Store(&view{})
		if err := k.RegisterAgain(r, d, m, access); err != nil {
			return nil, err
		}
		return r, nil
	}
	v := &view{}
	if err := r.fill(v, &m, d, access); err != nil {
		return nil, err
	}
	if err := k.insert(&r.cell, v); err != nil {
		return nil, err
	}
	return r, nil
}

// RegisterAgain is RegisterMemory with a region that was deregistered, under a key that is drawn
// anew, and allocates nothing for memory that is one slice, or no more slices than the region ever
// had. The caller has passed through the queues since Deregister, and nobody else has the region.
// The error is ErrBusy of a region that is registered.
func (k *Keys) RegisterAgain(r *Region, d *Domain, m Memory, access Access) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.contains(&r.cell):
		return ErrBusy
	case m.Of != nil && !k.contains(&m.Of.cell):
		return ErrNotRegistered
	}
	if r.shared { // what was made of it may still have that
		r.slices = nil
	}
	var next view
	if err := r.fill(&next, &m, d, access); err != nil {
		return err
	}
	v := r.now()
	if r.shared {
		v = &view{}
	}
	*v = next
	if err := k.insert(&r.cell, v); err != nil {
		return err
	}
	v.retain()
	return nil
}

// Forget lets go of the memory of a region that was deregistered, for RegisterAgain later: the
// caller has passed through the queues since, and nobody else has the region.
func (k *Keys) Forget(r *Region) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.contains(&r.cell):
	case r.shared:
		r.view.Store(&view{key: r.LKey()})
		r.slices = nil
	default:
		v := r.now()
		*v = view{key: v.key}
		if r.slices != nil {
			r.slices.letGo()
		}
	}
}

// view returns what a key of the memory stands for, but for the key.
func (m *Memory) view(d *Domain, access Access) (*view, error) {
	v := &view{}
	if err := m.fill(v, d, access); err != nil {
		return nil, err
	}
	return v, nil
}

// fill is fill of the memory, with slices that are held by the region. It is not in use, or has
// none.
func (r *Region) fill(v *view, m *Memory, d *Domain, access Access) error {
	if m.Of != nil {
		return m.part(v, d, access)
	}
	if err := m.fill(v, d, access); err != nil || len(m.Slices) == 0 {
		return err
	}
	if r.slices == nil {
		r.slices = &slicesSpace{}
	}
	v.bytes, v.space, v.length = nil, r.slices, r.slices.hold(m.Slices)
	return v.checkRange()
}

// fill sets a view, which is empty, to what a key of the memory stands for, but for the key and
// slices. With an error it is of no use.
func (m *Memory) fill(v *view, d *Domain, access Access) error {
	if d == nil {
		return ErrNoDomain
	}
	access &^= accessOptional &^ accessKnown
	if err := access.check(m); err != nil {
		return err
	}
	*v = view{
		valid: true, access: access | localRead, domain: d, base: m.Addr, sync: m.Sync,
		length: uint64(len(m.Bytes)), bytes: m.Bytes,
	}
	switch {
	case m.Pager != nil:
		v.length, v.space, v.start = m.Length, pagedSpace{m.Pager}, m.Start
	case m.Guard != nil:
		v.space = &guardedSpace{m.Bytes, m.Guard}
	}
	return v.checkRange()
}

// checkRange reports whether addresses, and offsets in a pager's memory, do not wrap.
func (v *view) checkRange() error {
	if v.base+v.length < v.base || v.start+v.length < v.start {
		return fmt.Errorf("%w: %d bytes at %#x", ErrRange, v.length, v.base)
	}
	return nil
}

// check reports whether a region of the memory can have these flags.
func (a Access) check(m *Memory) error {
	switch {
	case a&^accessKnown != 0:
		return fmt.Errorf("%w: %s", ErrAccess, a)
	case a&HugeTLB != 0 && a&OnDemand == 0:
		return fmt.Errorf("%w: %s needs ON_DEMAND", ErrAccess, a)
	case a&OnDemand != 0 != (m.Pager != nil):
		return fmt.Errorf("%w: ON_DEMAND is for memory with a pager, and only for it", ErrAccess)
	case len(m.Slices) > MaxEntries:
		return fmt.Errorf("%w: %d slices are more than %d", ErrEntries, len(m.Slices), MaxEntries)
	case len(m.Slices) > 0 && (m.Bytes != nil || m.Pager != nil || m.Guard != nil):
		return fmt.Errorf("%w: slices are all of the memory", ErrAccess)
	case a&ZeroBased != 0 && m.Addr != 0:
		return fmt.Errorf("%w: ZERO_BASED at address %#x", ErrAccess, m.Addr)
	case a&(RemoteWrite|RemoteAtomic) != 0 && a&LocalWrite == 0:
		return fmt.Errorf("%w: %s needs LOCAL_WRITE", ErrAccess, a)
	case a&FlushPersistent != 0 && m.Sync == nil:
		return fmt.Errorf("%w: %s needs memory that can be synced", ErrAccess, a)
	}
	return nil
}

// ErrBusy says that memory windows are bound to the region, or that layouts refer
// to it.
var ErrBusy = errors.New("mem: the region is in use by windows or layouts")

// Deregister takes the region's key out of use for good. The error is ErrBusy while
// a window is bound to the region or a layout refers to it, and ErrNotRegistered
// when it was deregistered before. A queue may still be copying: see the package
// comment.
func (k *Keys) Deregister(r *Region) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !k.contains(&r.cell):
		return ErrNotRegistered
	case r.users > 0:
		return ErrBusy
	}
	k.writeBack()
	k.cells.Delete(r.LKey() >> variantBits)
	k.release(r.now())
	r.detach()
	return nil
}

// detach puts another view into a cell whose key is gone, so that an access through a
// layout that began when the layout still had this cell as a source notices. One that never was
// a source keeps its own.
func (c *cell) detach() {
	if !c.shared {
		return
	}
	v := *c.view.Load()
	v.target = nil
	c.view.Store(&v)
}

// release gives up what a view that is used no longer depends on. The caller
// holds mu.
func (k *Keys) release(v *view) {
	if v.target != nil {
		v.target.users--
	}
	if l, ok := v.space.(interface{ release() }); ok && v.target == nil {
		l.release()
	}
}
