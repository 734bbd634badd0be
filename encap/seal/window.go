package seal

// Sizes of a window: bits in all, of which those of one word are being cleared.
const (
	windowWords = 32
	wordBits    = 64
	windowLen   = (windowWords - 1) * wordBits
)

// A window remembers which of the last counters were seen (RFC 6479). Counters begin with 1.
type window struct {
	last  uint64
	words [windowWords]uint64
}

// fresh reports whether a counter was not seen, as far as can be told.
func (w *window) fresh(counter uint64) bool {
	switch {
	case counter > w.last:
		return true
	case counter == 0, w.last-counter >= windowLen:
		return false
	}
	return w.words[counter/wordBits%windowWords]>>(counter%wordBits)&1 == 0
}

// note notes a counter that is fresh.
func (w *window) note(counter uint64) {
	if counter > w.last {
		for i := range min(counter/wordBits-w.last/wordBits, windowWords) {
			w.words[(w.last/wordBits+1+i)%windowWords] = 0
		}
		w.last = counter
	}
	w.words[counter/wordBits%windowWords] |= 1 << (counter % wordBits)
}
