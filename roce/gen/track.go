package gen

// windowBits is how many frames back a frame that came late is told from one that came twice.
const windowBits = 4096

// A Track follows the sequence numbers of a flow. The zero Track is one of which nothing came.
type Track struct {
	window   [windowBits / 64]uint64 // of the last windowBits numbers below next, which came
	next     uint64                  // one more than the largest number that came
	received uint64                  // different frames
	counts   TrackCounts

	begun   bool
	transit int64 // of the frame before, in nanoseconds
	jitter  int64 // sixteenths of nanoseconds
}

// TrackCounts is what came of a flow, in frames.
type TrackCounts struct {
	Received   uint64 // different frames
	Lost       uint64 // of those before the last that came, or that were sent, missing
	Duplicates uint64 // came once more
	Reordered  uint64 // came behind one with a larger number (RFC 4737 type-P-reordered)
	Ancient    uint64 // came so late that they may have come before: counted as no frame
}

// Add takes a sequence number that came, and reports whether the frame is a new one.
func (t *Track) Add(seq uint64) bool {
	if seq >= t.next {
		t.skip(seq)
		t.set(seq)
		t.received++
		return true
	}
	switch {
	case t.next-seq > windowBits:
		t.counts.Ancient++
		return false
	case t.has(seq):
		t.counts.Duplicates++
		return false
	}
	t.set(seq)
	t.received++
	t.counts.Reordered++
	return true
}

// skip makes the window one of numbers up to seq.
func (t *Track) skip(seq uint64) {
	if seq-t.next >= windowBits {
		clear(t.window[:])
	} else {
		for n := t.next; n <= seq; n++ {
			t.window[n/64%(windowBits/64)] &^= 1 << (n % 64)
		}
	}
	t.next = seq + 1
}

func (t *Track) set(n uint64) { t.window[n/64%(windowBits/64)] |= 1 << (n % 64) }

func (t *Track) has(n uint64) bool { return t.window[n/64%(windowBits/64)]>>(n%64)&1 != 0 }

// mostTransit bounds what a time under way is believed to be, 4 years: it is of a time that the
// frame says, and differences are added up in sixteenths.
const mostTransit = 1 << 57

// Jitter takes how long a frame was under way by the clocks of both ends, in nanoseconds, and
// returns how that differs from the frame before; ok is false for the first. A difference of
// the clocks does not matter.
func (t *Track) Jitter(transit int64) (difference int64, ok bool) {
	transit = min(max(transit, -mostTransit), mostTransit)
	difference, ok = transit-t.transit, t.begun
	t.transit, t.begun = transit, true
	if !ok {
		return 0, false
	}
	if difference < 0 {
		difference = -difference
	}
	t.jitter += difference - (t.jitter+8)>>4
	return difference, true
}

// MeanJitter is that of RFC 3550, 6.4.1, in nanoseconds.
func (t *Track) MeanJitter() int64 { return t.jitter >> 4 }

// Counts is what came so far. sent is how many frames the flow had by its own word, or 0: a
// smaller number than came is not believed.
func (t *Track) Counts(sent uint64) TrackCounts {
	c := t.counts
	c.Received = t.received
	c.Lost = max(sent, t.next) - t.received
	return c
}
