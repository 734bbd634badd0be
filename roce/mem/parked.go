package mem

import "sync"

// A Parker holds bytes that were accepted for memory and are stored later, as the
// payload of an inline receive is when its completion is polled.
type Parker interface {
	// StoreParked stores all that is held. It may be called at any time, with a
	// lock of Keys held: it must not change keys.
	StoreParked()
}

// parkers are those that have held bytes since all were last stored.
type parkers struct {
	mu          sync.Mutex
	list, spare []Parker
}

// Park says that p holds bytes from now on, until its StoreParked is called. That
// happens before any key changes, so that the bytes go where they would have gone
// at once. Bytes that are parked while a key changes meet its new state.
func (k *Keys) Park(p Parker) {
	k.parked.mu.Lock()
	defer k.parked.mu.Unlock()
	k.parked.list = append(k.parked.list, p)
}

// StoreParked has all bytes stored that are held. When it returns after a key was
// changed, nobody stores any more what was accepted before.
func (k *Keys) StoreParked() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.storeParked()
}

// storeParked is StoreParked. The caller holds mu, so that nobody returns from here
// while another is still storing.
func (k *Keys) storeParked() {
	p := &k.parked
	p.mu.Lock()
	list := p.list
	p.list, p.spare = p.spare[:0], list
	p.mu.Unlock()
	for i, one := range list {
		one.StoreParked()
		list[i] = nil
	}
}

// Steady is Check, and reports whether what is granted stays so, and the bytes present,
// for as long as no key changes: only then may bytes for them be parked.
func (k *Keys) Steady(a Accessor, key uint32, addr uint64, n int, need Access) (bool, Fault) {
	v, off, f := k.resolve(a, key, addr, n, need)
	if f != OK {
		return false, f
	}
	return v.steady(off, uint64(n)), OK
}

// steady reports whether n bytes from off on never are absent.
func (v *view) steady(off, n uint64) bool {
	if v.space == nil {
		return true
	}
	s, ok := v.space.(interface{ steady(off, n uint64) bool })
	return ok && s.steady(v.start+off, n)
}
