package mem

// The column of a matrix is the most usual layout, and the one in which a packet has
// most pieces: it has a way of its own, without what others need.

// loadColumn is load.
func (l *layoutSpace) loadColumn(off uint64, dst []byte) Fault {
	e, at, left := l.inColumn(off)
	if !l.sources[e.source].alive() {
		return FaultInvalid
	}
	stride := e.strides[0]
	if n := uint64(len(dst)); n > left {
		if left < e.n {
			copy(dst[:left], e.bytes[at:])
			dst, at = dst[left:], at+stride-(e.n-left)
		}
		count := l.periods(uint64(len(dst)))
		gather(dst, e.bytes[at:], int(e.n), int(stride), int(count))
		dst, at = dst[count*e.n:], at+count*stride
	}
	if len(dst) > 0 {
		copy(dst, e.bytes[at:])
	}
	return OK
}

// storeColumn is store.
func (l *layoutSpace) storeColumn(off uint64, src []byte) Fault {
	e, at, left := l.inColumn(off)
	if !l.sources[e.source].alive() {
		return FaultInvalid
	}
	stride := e.strides[0]
	if n := uint64(len(src)); n > left {
		if left < e.n {
			copy(e.bytes[at:], src[:left])
			src, at = src[left:], at+stride-(e.n-left)
		}
		count := l.periods(uint64(len(src)))
		scatter(e.bytes[at:], src, int(e.n), int(stride), int(count))
		src, at = src[count*e.n:], at+count*stride
	}
	if len(src) > 0 {
		copy(e.bytes[at:], src)
	}
	return OK
}

// inColumn returns the one lane, where in its memory an offset is, and how many bytes
// of the element are left there.
func (l *layoutSpace) inColumn(off uint64) (e *lane, at, left uint64) {
	e = &l.lanes[0]
	rep := l.periods(off)
	in := off - rep*l.period
	return e, rep*e.strides[0] + in, e.n - in
}
