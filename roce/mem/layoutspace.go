package mem

// A layoutSpace is memory that a layout puts together. Like the view that has it, it
// never changes; its sources cannot be changed before it is released.
type layoutSpace struct {
	sources []source
	depth   int  // 1 over regions, else one more than that of the deepest source
	paged   bool // pages may be absent somewhere below

	length uint64
	period uint64
	shift  uint8    // period is 1 << shift, unless that is 0
	repeat []uint64 // by dimension, the fastest first; none of a list
	lanes  []lane
	ends   []uint64 // where each lane ends in one repetition
	// column says that all of it is elements of one length, so far from each other, in
	// plain memory.
	column bool
}

// A source is a key that a layout is in, as it was when the layout was checked.
type source struct {
	cell  *cell
	view  *view
	inner *layoutSpace // of a key that has a layout
}

// A lane is an entry of a layout with its memory found.
type lane struct {
	bytes   []byte // the memory, from the first element on; nil when it is not one slice
	off     uint64 // of the first element, in the view of the source
	n       uint64 // bytes of an element
	strides []uint64
	source  uint32
}

// steady reports whether the memory is never absent: what a layout is in does not change
// before its key does.
func (l *layoutSpace) steady(_, _ uint64) bool { return !l.paged }

// few is how many sources are looked at whether an access needs them or not.
const few = 4

// alive reports whether all sources of an access are what they were, or of so many elements
// of it. Only an access that found its own key before that was changed can see that they are
// not. What a source is in need not be looked at: as long as it is what it was, it holds that.
func (l *layoutSpace) alive(off, n, elements uint64) bool {
	if len(l.sources) <= few {
		for i := range l.sources {
			if !l.sources[i].alive() {
				return false
			}
		}
		return true
	}
	if n == 0 {
		return true
	}
	p := l.find(off)
	i, in := p.lane, p.in+l.begin(p.lane)
	for range min(uint64(len(l.lanes))+1, elements) {
		switch {
		case !l.sources[l.lanes[i].source].alive():
			return false
		case n <= l.ends[i]-in:
			return true
		}
		n -= l.ends[i] - in
		in = l.ends[i]
		if i++; i == len(l.lanes) {
			i, in = 0, 0
		}
	}
	return true
}

func (s *source) alive() bool { return s.cell.view.Load() == s.view }

// A place is where an offset leads to.
type place struct {
	lane int
	in   uint64 // bytes into its element
	rep  uint64 // of which repetition
}

// find returns the place of an offset. It takes one division and a binary search among
// the lanes.
func (l *layoutSpace) find(off uint64) (p place) {
	p.in = off
	if len(l.repeat) > 0 {
		p.rep = l.periods(off)
		p.in -= p.rep * l.period
	}
	if len(l.lanes) > 1 {
		p.lane = l.search(p.in)
		p.in -= l.begin(p.lane)
	}
	return p
}

// search is the first lane that ends behind an offset in a repetition.
func (l *layoutSpace) search(in uint64) int {
	low, high := 0, len(l.ends)
	for low < high {
		if mid := int(uint(low+high) >> 1); l.ends[mid] <= in {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// periods is how many whole periods are in n bytes.
func (l *layoutSpace) periods(n uint64) uint64 {
	if l.shift != 0 {
		return n >> (l.shift & 63) // the usual case, and no division
	}
	return n / l.period
}

// begin is where a lane begins in a repetition.
func (l *layoutSpace) begin(i int) uint64 {
	if i == 0 {
		return 0
	}
	return l.ends[i-1]
}

// A position is the number of a repetition, by dimension.
type position [MaxDims]uint64

// position splits the number of a repetition.
func (l *layoutSpace) position(rep uint64) (p position) {
	last := len(l.repeat) - 1
	for d, r := range l.repeat[:max(last, 0)] {
		p[d] = rep % r
		rep /= r
	}
	if last >= 0 {
		p[last] = rep
	}
	return p
}

// skip moves n repetitions on, which are not more than are left in dimension 0.
func (l *layoutSpace) skip(p *position, n uint64) {
	p[0] += n
	for d := 0; p[d] == l.repeat[d] && d+1 < len(l.repeat); d++ {
		p[d] = 0
		p[d+1]++
	}
}

// at is the offset of an element from the first one.
func (e *lane) at(p *position) (off uint64) {
	for d, s := range e.strides {
		off += p[d] * s
	}
	return off
}

// How far a look at a layout goes: at so many elements, and of those that are absent at so
// many as a pager likes to be asked for at once.
const (
	maxLook   = 1024
	maxAbsent = 256
)

// ready reports whether bytes can be accessed at once, of n the first ones. Absent pages are
// asked for, wherever they are.
func (l *layoutSpace) ready(off, n uint64, write bool) (looked uint64, f Fault) {
	return l.look(off, n, write, maxLook)
}

// look is ready that looks at so many elements.
func (l *layoutSpace) look(off, n uint64, write bool, elements uint64) (looked uint64, f Fault) {
	switch {
	case !l.alive(off, n, elements):
		return 0, FaultInvalid
	case !l.paged:
		return n, OK
	}
	p, t := l.find(off), transfer{left: n, write: write, probe: true, elements: elements}
	f = l.walk(&p, &t)
	switch {
	case t.absent > 0 && (f == OK || f == FaultPage):
		f = FaultPage
	case f == FaultPage: // it looked at as many as it may
		f = OK
	}
	return n - t.left, f
}

// present is ready for all of an access, which is as long as a packet.
func (l *layoutSpace) present(off, n uint64, write bool) Fault {
	_, f := l.look(off, n, write, n+1) // elements have one byte at least
	return f
}

// one returns the rest of a transfer as memory when it is part of one element of plain
// memory, nil when it is not. Pieces longer than packets then cost hardly more than none.
func (l *layoutSpace) one(p *place, n uint64) []byte {
	if n == 0 {
		return nil // the place may be the end, which is in no element
	}
	e := &l.lanes[p.lane]
	if e.bytes == nil || n > e.n-p.in || !l.sources[e.source].alive() {
		return nil
	}
	in := p.in
	switch len(e.strides) {
	case 0:
	case 1:
		in += p.rep * e.strides[0]
	default:
		at := l.position(p.rep)
		in += e.at(&at)
	}
	return e.bytes[in:][:n]
}

func (l *layoutSpace) load(off uint64, dst []byte) Fault {
	if l.column {
		return l.loadColumn(off, dst)
	}
	p, n := l.find(off), uint64(len(dst))
	if b := l.one(&p, n); b != nil {
		copy(dst, b)
		return OK
	}
	if f := l.present(off, n, false); f != OK {
		return f
	}
	t := transfer{buf: dst, left: n}
	return l.walk(&p, &t)
}

func (l *layoutSpace) store(off uint64, src []byte) Fault {
	if l.column {
		return l.storeColumn(off, src)
	}
	p, n := l.find(off), uint64(len(src))
	if b := l.one(&p, n); b != nil {
		copy(b, src)
		return OK
	}
	if f := l.present(off, n, true); f != OK {
		return f
	}
	t := transfer{buf: src, left: n, write: true}
	return l.walk(&p, &t)
}

// word needs the eight bytes in one element, aligned where they really are.
func (l *layoutSpace) word(off uint64, op WordOp, x, y uint64) (old uint64, f Fault) {
	at := l.find(off)
	e := &l.lanes[at.lane]
	s := &l.sources[e.source]
	switch {
	case e.n-at.in < wordSize:
		return 0, FaultMisaligned
	case !s.alive():
		return 0, FaultInvalid
	}
	p := l.position(at.rep)
	return s.view.word(e.off+e.at(&p)+at.in, op, x, y)
}

// release lets the sources be changed again. The caller holds Keys.mu.
func (l *layoutSpace) release() {
	for i := range l.sources {
		l.sources[i].cell.users--
	}
}
