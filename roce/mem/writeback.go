package mem

import "sync"

// A WriteBacker buffers bytes that were accepted for memory and are stored later, as the
// payload of an inline receive is when its completion is polled.
type WriteBacker interface {
	// WriteBack stores all that is buffered. It may be called at any time, with a
	// lock of Keys held: it must not change keys.
	WriteBack()
}

// writeBackers are those that have buffered bytes since the last write-back.
type writeBackers struct {
	mu          sync.Mutex
	list, spare []WriteBacker
}

// AddWriteBacker notes that p has buffered bytes, until its WriteBack is called. That
// is done before any key changes, so that the bytes go where they would have gone at
// once. Bytes that are added while a key changes are stored by its new state.
func (k *Keys) AddWriteBacker(p WriteBacker) {
	k.deferred.mu.Lock()
	defer k.deferred.mu.Unlock()
	k.deferred.list = append(k.deferred.list, p)
}

// WriteBack has all buffered bytes stored. When it returns after a key was changed, no
// bytes that were accepted before the change are stored any more.
func (k *Keys) WriteBack() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writeBack()
}

// writeBack is WriteBack. The caller holds mu, so that no call returns
// while another still stores.
func (k *Keys) writeBack() {
	p := &k.deferred
	p.mu.Lock()
	list := p.list
	p.list, p.spare = p.spare[:0], list
	p.mu.Unlock()
	for i, one := range list {
		one.WriteBack()
		list[i] = nil
	}
}

// Steady is Check, and reports whether what is granted stays so, and the bytes present,
// for as long as no key changes: only then may bytes for them be buffered.
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
