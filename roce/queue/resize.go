package queue

import "xroce/roce/verbs"

// newRing returns memory for at least depth entries and their pieces.
func (w *WorkQueue[E]) newRing(depth int) ([]E, []verbs.SGE) {
	n := ringSize(depth)
	return make([]E, n), make([]verbs.SGE, n*int(w.maxSGE))
}

// move makes memory from newRing that of the queue. Entries keep their numbers
// and pieces; they must fit. The caller holds mu, and no other goroutine takes
// entries meanwhile. Inline data is not moved.
func (w *WorkQueue[E]) move(ring []E, sges []verbs.SGE) {
	mask := uint32(len(ring) - 1)
	for i := w.head.Load(); i != w.tail.Load(); i++ {
		ring[i&mask] = *w.At(i)
		copy(sges[int(i&mask)*int(w.maxSGE):], w.SGList(i, int(w.maxSGE)))
	}
	w.ring, w.sges, w.mask = ring, sges, mask
}
