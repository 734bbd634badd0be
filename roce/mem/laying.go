package mem

import (
	"fmt"
	"math/bits"
)

// A layout may have a million entries. Who looks at all of them at once holds the lock of the keys
// meanwhile, and with it every queue whose packets change a key. So they are looked at in parts,
// with the lock given back in between, and from the beginning when a key has changed since.

const (
	layEntries  = 1024 // that are looked at in one part
	layRestarts = 3    // after so many all is one part: else it might never end
)

// A laying is a layout on its way to a key.
type laying struct {
	layTarget
	space  *layoutSpace      // as far as it is found; nil before the first part
	known  map[uint32]uint32 // its sources by key
	source uint32            // of the last entry
	tries  int
}

// A layTarget is the key that gets a layout, as it is, and as it is to be.
type layTarget struct {
	cell   *cell
	view   *view
	key    uint32
	domain *Domain
	access Access
}

// lay gives a cell a layout under a key, or does the next part of that. The caller holds mu.
func (k *Keys) lay(x *laying, l *Layout, to layTarget) (done bool, err error) {
	if to.cell.users > 0 {
		return false, ErrBusy
	}
	to.access &^= accessOptional &^ accessKnown
	if x.space == nil || x.layTarget != to {
		if err := to.check(l); err != nil {
			return false, err
		}
		*x = laying{layTarget: to, tries: x.tries + 1, known: map[uint32]uint32{}}
		x.space = newLayoutSpace(l)
	}
	n := layEntries
	if x.tries > layRestarts {
		n = len(l.entries)
	}
	if more, err := k.findMore(x, l, n); more || err != nil {
		return false, err
	}
	for i := range x.space.sources {
		if from := &x.space.sources[i]; !from.alive() || !k.contains(from.cell) {
			x.space = nil
			return false, nil
		}
	}
	v, err := to.successor(l)
	if err != nil {
		return false, err
	}
	for i := range x.space.sources {
		from := x.space.sources[i].cell
		from.users++
		from.shared = true
	}
	v.space = x.space
	k.release(to.view)
	k.replace(to.cell, v)
	return true, nil
}

// check looks at everything but the entries.
func (to *layTarget) check(l *Layout) error {
	switch err := to.access.check(&Memory{}); {
	case err != nil:
		return err
	case to.domain == nil:
		return ErrNoDomain
	case l == nil:
		return fmt.Errorf("%w: it is nil", ErrLayout)
	case to.cell.kind == kindIndirect && l.count > int(to.cell.entries):
		return fmt.Errorf("%w: %d, the key takes %d", ErrEntries, l.count, to.cell.entries)
	}
	_, err := to.successor(l)
	return err
}

// successor returns what the key is with the layout, but for its memory.
func (to *layTarget) successor(l *Layout) (*view, error) {
	v := &view{
		key: to.key, valid: true, access: to.access | localRead, domain: to.domain,
		home: to.view.home, base: to.view.base, length: l.length,
	}
	if to.access&ZeroBased != 0 {
		v.base = 0
	}
	if v.base+v.length < v.base {
		return nil, fmt.Errorf("%w: length %d at address %#x reaches beyond 2^64", ErrLayout,
			v.length, v.base)
	}
	return v, nil
}

// newLayoutSpace returns the space of a layout whose memory is to be found.
func newLayoutSpace(l *Layout) *layoutSpace {
	s := &layoutSpace{
		depth: 1, length: l.length, period: l.period, repeat: l.repeat,
		lanes: make([]lane, 0, len(l.entries)), ends: make([]uint64, 0, len(l.entries)),
	}
	if l.period&(l.period-1) == 0 {
		s.shift = uint8(bits.TrailingZeros64(l.period))
	}
	return s
}

// findMore finds the memory of up to n more entries, and reports whether there are more.
func (k *Keys) findMore(x *laying, l *Layout, n int) (more bool, err error) {
	s := x.space
	first := len(s.lanes)
	end := uint64(0)
	if first > 0 {
		end = s.ends[first-1]
	}
	last := min(first+n, len(l.entries))
	for i := first; i < last; i++ {
		e := &l.entries[i]
		if i == 0 || s.sources[x.source].view.key != e.key {
			at, ok := x.known[e.key]
			if !ok {
				if err := k.addSource(s, x.cell, e, x.domain, x.access); err != nil {
					return false, err
				}
				at = uint32(len(s.sources) - 1)
				x.known[e.key] = at
			}
			x.source = at
		}
		v := s.sources[x.source].view
		off, f := v.within(e.addr, e.extent)
		switch {
		case f != OK:
			return false, e.wrong("addr", "%#x and %d bytes from it: %s", e.addr, e.extent, f)
		case e.overlapping && x.access&writes != 0:
			return false, e.wrong("strides",
				"elements overlap, and access %s lets them be written", x.access)
		}
		p := lane{off: off, n: e.n, strides: e.strides, source: x.source}
		if v.space == nil {
			p.bytes = v.bytes[off:][:e.extent:e.extent]
		}
		end += e.n
		s.lanes, s.ends = append(s.lanes, p), append(s.ends, end)
	}
	if last < len(l.entries) {
		return true, nil
	}
	s.column = len(s.repeat) == 1 && len(s.lanes) == 1 && s.lanes[0].bytes != nil
	return false, nil
}
