package mem

import "sort"

// A slicesSpace is slices that are laid end to end, all plain memory.
type slicesSpace struct {
	slices [][]byte // none is empty
	ends   []uint64 // where each ends
}

// hold has the space be those of the slices that are not empty, and returns how many bytes they
// are. It allocates when there are more than ever before.
func (s *slicesSpace) hold(slices [][]byte) (length uint64) {
	s.slices, s.ends = s.slices[:0], s.ends[:0]
	for _, b := range slices {
		if len(b) == 0 {
			continue
		}
		length += uint64(len(b))
		s.slices, s.ends = append(s.slices, b), append(s.ends, length)
	}
	return length
}

// letGo holds no memory any more.
func (s *slicesSpace) letGo() {
	clear(s.slices)
	s.slices, s.ends = s.slices[:0], s.ends[:0]
}

// find returns the slice that an offset is in, and the offset there. The end is in none.
func (s *slicesSpace) find(off uint64) (i int, in uint64) {
	i = sort.Search(len(s.ends), func(i int) bool { return s.ends[i] > off })
	if i > 0 {
		off -= s.ends[i-1]
	}
	return i, off
}

// ready reports OK: the memory is never absent.
func (s *slicesSpace) ready(_, n uint64, _ bool) (looked uint64, f Fault) { return n, OK }

func (s *slicesSpace) steady(_, _ uint64) bool { return true }

func (s *slicesSpace) load(off uint64, dst []byte) Fault {
	for i, in := s.find(off); len(dst) > 0; i, in = i+1, 0 {
		dst = dst[copy(dst, s.slices[i][in:]):]
	}
	return OK
}

func (s *slicesSpace) store(off uint64, src []byte) Fault {
	for i, in := s.find(off); len(src) > 0; i, in = i+1, 0 {
		to := s.slices[i][in:]
		to = to[:min(len(to), len(src))]
		held := beginStore(to)
		src = src[copy(to, src):]
		endStore(held)
	}
	return OK
}

// word needs the eight bytes in one slice, aligned where they really are.
func (s *slicesSpace) word(off uint64, op WordOp, x, y uint64) (old uint64, f Fault) {
	i, in := s.find(off)
	if len(s.slices[i])-int(in) < wordSize {
		return 0, FaultMisaligned
	}
	w := word(s.slices[i][in:][:wordSize])
	if w == nil {
		return 0, FaultMisaligned
	}
	return op.Do(w, x, y), OK
}
