package engine

import "xroce/roce/mem"

// An ownMemory is what a region has mapped itself, or nothing. It stays until Deregister or
// ReregAlloc, whatever memory the region has meanwhile: a part of it, or other.
type ownMemory struct {
	whole []byte
	free  func() error // unmaps it, nil when there is none
	huge  bool         // of huge pages
	// guard is for what others may take away, nil for what stays.
	guard mem.Guard
	// constant says that it is mapped for reading: storing to it would end the process.
	constant bool
}

// release unmaps it.
func (o *ownMemory) release() error {
	if o.free == nil {
		return nil
	}
	return o.free()
}

// forbids reports whether memory must not be written because it is mapped for reading.
func (o *ownMemory) forbids(b []byte, access mem.Access) bool {
	return o.constant && access&mem.LocalWrite != 0 && overlap(b, o.whole)
}

// guardOf returns the guard that memory needs because it is part of this.
func (o *ownMemory) guardOf(b []byte) mem.Guard {
	if o.guard == nil || !overlap(b, o.whole) {
		return nil
	}
	return o.guard
}

// overlap reports whether two pieces of memory have bytes in common.
func overlap(a, b []byte) bool {
	x, y := mem.MemoryOf(a, 0).Addr, mem.MemoryOf(b, 0).Addr
	return x < y+uint64(len(b)) && y < x+uint64(len(a))
}
