package gen

import (
	"encoding/binary"
	"math"
)

// A Transit is how long the frames of a flow were under way, by the clocks of both ends, in
// nanoseconds: what a sink tells with its answer. Frames that came before they were sent are not
// in it, and what is longer than MaxTransit counts as that.
type Transit struct {
	Min, Mean, Max uint32
	Jitter         uint32 // mean variation (RFC 3550)
}

// MaxTransit is the longest time that a Transit can tell, 4.3 s.
const MaxTransit = math.MaxUint32

// transitLen is the length of a Transit behind a signature, in bytes.
const transitLen = 16

// put writes it to b.
func (t *Transit) put(b []byte) {
	for i, v := range []uint32{t.Min, t.Mean, t.Max, t.Jitter} {
		binary.BigEndian.PutUint32(b[4*i:], v)
	}
}

// ParseTransit reads what is behind the signature of an answer. ok is false when there is nothing,
// or what cannot be.
func ParseTransit(payload []byte) (t Transit, ok bool) {
	if len(payload) < SignatureLen+transitLen {
		return t, false
	}
	b := payload[SignatureLen:]
	t = Transit{
		binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]),
		binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:]),
	}
	return t, t.Min <= t.Mean && t.Mean <= t.Max && t.Max > 0
}

// A TransitSum is a Transit in the making. Its zero value is of no frames.
type TransitSum struct {
	frames, sum uint64
	min, max    uint32
}

// Add takes how long a frame was under way.
func (s *TransitSum) Add(ns int64) {
	if ns < 0 {
		return
	}
	v := uint32(min(ns, MaxTransit))
	if s.frames == 0 || v < s.min {
		s.min = v
	}
	s.max = max(s.max, v)
	s.frames++
	s.sum += uint64(v)
}

// Transit is what was added, with a mean variation.
func (s *TransitSum) Transit(jitter int64) Transit {
	if s.frames == 0 {
		return Transit{}
	}
	return Transit{
		s.min, uint32(s.sum / s.frames), s.max, uint32(min(max(jitter, 0), MaxTransit)),
	}
}
