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

// steady tells whether the memory is never absent: what a layout is in does not change
// before its key does.
func (l *layoutSpace) steady(_, _ uint64) bool { return !l.paged }

// few is how many sources are looked at whether an access needs them or not.
const few = 4

// alive tells whether all sources of an access are what they were. Only an access
// that found its own key before that was changed can see that they are not. What a
// source is in need not be looked at: as long as it is what it was, it holds that.
func (l *layoutSpace) alive(off, n uint64) bool {
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
	i, in, _ := l.find(off)
	in += l.begin(i)
	for range len(l.lanes) + 1 {
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

// find returns the lane of an offset, how far into its element that is, and in which
// repetition. It takes one division and a binary search among the lanes.
func (l *layoutSpace) find(off uint64) (i int, in, rep uint64) {
	in = off
	if len(l.repeat) > 0 {
		rep = l.periods(off)
		in -= rep * l.period
	}
	if len(l.lanes) > 1 {
		i = l.lane(in)
		in -= l.begin(i)
	}
	return i, in, rep
}

// lane is the first lane that ends behind an offset, in a repetition.
func (l *layoutSpace) lane(in uint64) int {
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

// ready tells whether n bytes can be accessed at once. Absent pages are all asked
// for, wherever they are.
func (l *layoutSpace) ready(off, n uint64, write bool) Fault {
	switch {
	case !l.alive(off, n):
		return FaultInvalid
	case !l.paged:
		return OK
	}
	t := transfer{left: n, write: write, probe: true}
	if f := l.walk(off, &t); f != OK {
		return f
	}
	if t.absent {
		return FaultPage
	}
	return OK
}

// piece returns n bytes that are part of one element of plain memory, nil when they
// are not. Pieces longer than packets then cost hardly more than none.
func (l *layoutSpace) piece(off, n uint64) []byte {
	if n == 0 {
		return nil
	}
	i, in, rep := l.find(off)
	e := &l.lanes[i]
	if e.bytes == nil || n > e.n-in || !l.sources[e.source].alive() {
		return nil
	}
	switch len(e.strides) {
	case 0:
	case 1:
		in += rep * e.strides[0]
	default:
		p := l.position(rep)
		in += e.at(&p)
	}
	return e.bytes[in:][:n]
}

func (l *layoutSpace) load(off uint64, dst []byte) Fault {
	if b := l.piece(off, uint64(len(dst))); b != nil {
		copy(dst, b)
		return OK
	}
	t := transfer{buf: dst, left: uint64(len(dst))}
	if f := l.ready(off, t.left, false); f != OK {
		return f
	}
	return l.walk(off, &t)
}

func (l *layoutSpace) store(off uint64, src []byte) Fault {
	if b := l.piece(off, uint64(len(src))); b != nil {
		copy(b, src)
		return OK
	}
	t := transfer{buf: src, left: uint64(len(src)), write: true}
	if f := l.ready(off, t.left, true); f != OK {
		return f
	}
	return l.walk(off, &t)
}

// word needs the eight bytes in one element, aligned where they really are.
func (l *layoutSpace) word(off uint64, op WordOp, x, y uint64) (old uint64, f Fault) {
	i, in, rep := l.find(off)
	e := &l.lanes[i]
	s := &l.sources[e.source]
	switch {
	case e.n-in < wordSize:
		return 0, FaultMisaligned
	case !s.alive():
		return 0, FaultInvalid
	}
	p := l.position(rep)
	return s.view.word(e.off+e.at(&p)+in, op, x, y)
}

// release lets the sources be changed again. The caller holds Keys.mu.
func (l *layoutSpace) release() {
	for i := range l.sources {
		l.sources[i].cell.users--
	}
}
