package mem

import "encoding/binary"

// A transfer is an access on its way through a layout: it copies, or asks whether
// copying would go well.
type transfer struct {
	buf   []byte // the rest of the other side
	left  uint64 // its length, also when there is no other side
	write bool   // to the layout
	probe bool   // only ask
	// Of a probe: at how many elements it may look yet, and how many were absent and asked
	// for. It ends with FaultPage when it may look no further; left is what it did not see.
	elements uint64
	absent   uint64
}

// walk takes a transfer through the layout, from a place on. Everything but pages that
// were taken away meanwhile was checked.
func (l *layoutSpace) walk(from *place, t *transfer) Fault {
	i, in := from.lane, from.in
	if len(l.repeat) == 0 {
		return l.walkList(i, in, t)
	}
	p := l.position(from.rep)
	if len(l.lanes) == 1 {
		return l.walkColumn(&p, in, t)
	}
	for t.left > 0 {
		e := &l.lanes[i]
		if f := l.move(t, e, e.at(&p)+in, min(t.left, e.n-in)); f != OK {
			return f
		}
		in = 0
		if i++; i == len(l.lanes) {
			i = 0
			l.skip(&p, 1)
		}
	}
	return OK
}

func (l *layoutSpace) walkList(i int, in uint64, t *transfer) Fault {
	for ; t.left > 0; i++ {
		e := &l.lanes[i]
		if f := l.move(t, e, in, min(t.left, e.n-in)); f != OK {
			return f
		}
		in = 0
	}
	return OK
}

// walkColumn takes whole elements of the one block together, as far as dimension 0
// goes.
func (l *layoutSpace) walkColumn(p *position, in uint64, t *transfer) Fault {
	e := &l.lanes[0]
	if in > 0 {
		n := min(t.left, e.n-in)
		if f := l.move(t, e, e.at(p)+in, n); f != OK || t.left == 0 {
			return f
		}
		l.skip(p, 1)
	}
	for whole := l.periods(t.left); whole > 0; { // whose length is that of the one block
		run := min(whole, l.repeat[0]-p[0])
		if f := l.moveRun(t, e, e.at(p), run); f != OK {
			return f
		}
		whole -= run
		l.skip(p, run)
	}
	if t.left == 0 {
		return OK
	}
	return l.move(t, e, e.at(p), t.left)
}

// moveRun moves elements that are e.strides[0] apart.
func (l *layoutSpace) moveRun(t *transfer, e *lane, off, count uint64) Fault {
	switch {
	case e.bytes == nil:
		for range count {
			if f := l.move(t, e, off, e.n); f != OK {
				return f
			}
			off += e.strides[0]
		}
		return OK
	case t.probe && t.elements == 0:
		return FaultPage
	case t.probe:
		t.elements-- // plain memory is there, and a run of it is one look
	case t.write:
		scatter(e.bytes[off:], t.buf, int(e.n), int(e.strides[0]), int(count))
	default:
		gather(t.buf, e.bytes[off:], int(e.n), int(e.strides[0]), int(count))
	}
	t.pass(count * e.n)
	return OK
}

// copyPiece is copy, which takes longer to call than to copy the eight bytes that
// pieces like to have. dst has room.
func copyPiece(dst, src []byte) {
	if len(src) == wordSize {
		binary.NativeEndian.PutUint64(dst, binary.NativeEndian.Uint64(src))
		return
	}
	copy(dst, src)
}

// gather copies count times n bytes, stride apart.
func gather(dst, src []byte, n, stride, count int) {
	if n == wordSize {
		for off := 0; count > 0; count-- {
			binary.NativeEndian.PutUint64(dst, binary.NativeEndian.Uint64(src[off:]))
			dst, off = dst[wordSize:], off+stride
		}
		return
	}
	for off := 0; count > 0; count-- {
		copy(dst[:n], src[off:])
		dst, off = dst[n:], off+stride
	}
}

// scatter is gather the other way round.
func scatter(dst, src []byte, n, stride, count int) {
	if n == wordSize {
		for off := 0; count > 0; count-- {
			binary.NativeEndian.PutUint64(dst[off:], binary.NativeEndian.Uint64(src))
			src, off = src[wordSize:], off+stride
		}
		return
	}
	for off := 0; count > 0; count-- {
		copy(dst[off:], src[:n])
		src, off = src[n:], off+stride
	}
}

// move moves n bytes that are one piece, off bytes behind the first of the lane.
func (l *layoutSpace) move(t *transfer, e *lane, off, n uint64) (f Fault) {
	s := &l.sources[e.source]
	switch {
	case e.bytes != nil:
		switch {
		case t.probe && t.elements == 0:
			return FaultPage
		case t.probe:
			t.elements--
		case t.write:
			copyPiece(e.bytes[off:], t.buf[:n])
		default:
			copyPiece(t.buf[:n], e.bytes[off:][:n])
		}
	case s.inner != nil:
		// The layout below goes on with this transfer, but not beyond the piece.
		rest := t.left - n
		t.left = n
		p := s.inner.find(s.view.start + e.off + off)
		f = s.inner.walk(&p, t)
		t.left += rest
		return f
	case t.probe:
		if f = t.look(s.view, e.off+off, n); f != OK {
			return f
		}
	case t.write:
		f = s.view.store(e.off+off, t.buf[:n])
	default:
		f = s.view.load(e.off+off, t.buf[:n])
	}
	t.pass(n)
	return f
}

// look asks for n bytes of a view. It ends the probe where that may look no further.
func (t *transfer) look(v *view, off, n uint64) Fault {
	if t.elements == 0 || t.absent == maxAbsent {
		return FaultPage
	}
	t.elements--
	_, f := v.ready(off, n, t.write)
	if f == FaultPage {
		t.absent++
		f = OK
	}
	return f
}

// pass notes that n bytes are done.
func (t *transfer) pass(n uint64) {
	t.left -= n
	if !t.probe {
		t.buf = t.buf[n:]
	}
}
