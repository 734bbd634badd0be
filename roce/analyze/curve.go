package analyze

import "xroce/roce/clock"

// Bounds of a curve.
const (
	maxBuckets = 512
	maxPoints  = 2048

	firstWidth = 100 * clock.Microsecond // of a bucket, before time makes it wider
)

// A Series is how many bytes there were in each span of time.
type Series struct {
	Start clock.Time `json:"start_ns"` // since the first packet of the capture
	Width clock.Time `json:"width_ns"` // of a bucket
	Bytes []uint64   `json:"bytes"`
	begun bool

	last  int        // the bucket that was added to
	since clock.Time // when it begins
	until clock.Time // when it ends, 0 before there is one
}

// add counts bytes at a time. Buckets become wider when there would be too many.
func (s *Series) add(at clock.Time, n int) {
	if at >= s.since && at < s.until { // a division costs as much as all else here
		s.Bytes[s.last] += uint64(n)
		return
	}
	if !s.begun {
		s.begun, s.Start, s.Width = true, at, firstWidth
	}
	i := max(at-s.Start, 0) / s.Width
	for i >= maxBuckets {
		for j := range (len(s.Bytes) + 1) / 2 {
			sum := s.Bytes[2*j]
			if 2*j+1 < len(s.Bytes) {
				sum += s.Bytes[2*j+1]
			}
			s.Bytes[j] = sum
		}
		s.Bytes = s.Bytes[:(len(s.Bytes)+1)/2]
		s.Width *= 2
		i /= 2
	}
	for int(i) >= len(s.Bytes) {
		s.Bytes = append(s.Bytes, 0)
	}
	s.Bytes[i] += uint64(n)
	s.last = int(i)
	s.since = s.Start + i*s.Width
	s.until = s.since + s.Width
}

// Mark is what a point of a PSN graph is.
type Mark uint8

// The marks.
const (
	Sent  Mark = iota // for the first time
	Again             // sent again
	Acked
	Naked // asked for again, or refused
)

// A Point is a packet in the graph of PSNs over time.
type Point struct {
	At   clock.Time `json:"at_ns"` // since the first packet of the capture
	PSN  int32      `json:"psn"`   // from the first one of the direction
	Mark Mark       `json:"mark"`
}

// Points are a part of all points that is even over time: when there are too many, every second
// one is dropped, and so are every second of those to come. What came again and what was refused
// is dropped as others are, but after them.
type Points struct {
	List   []Point
	stride int
	skip   int
}

func (p *Points) add(at clock.Time, psn int32, m Mark) {
	if p.stride == 0 {
		p.stride = 1
	}
	rare := m == Again || m == Naked
	if !rare {
		if p.skip++; p.skip < p.stride {
			return
		}
		p.skip = 0
	}
	if len(p.List) == maxPoints {
		p.thin()
	}
	p.List = append(p.List, Point{at, psn, m})
}

// thin drops every second point, and of the rare ones only if that does not make enough room.
func (p *Points) thin() {
	p.stride *= 2
	for _, all := range [...]bool{false, true} {
		kept, odd := p.List[:0], false
		for _, point := range p.List {
			if rare := point.Mark == Again || point.Mark == Naked; rare && !all {
				kept = append(kept, point)
				continue
			}
			if odd = !odd; odd {
				kept = append(kept, point)
			}
		}
		if p.List = kept; len(kept) <= maxPoints*3/4 {
			return
		}
	}
}
