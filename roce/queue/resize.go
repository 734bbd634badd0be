package queue

import "xroce/roce/verbs"

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
