package encap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"xroce/roce/clock"
)

// A ReassemblerConfig bounds what a Reassembler holds. A zero field has its default.
type ReassemblerConfig struct {
	// Frames is how many are under way at once, 64 by default; their memory is taken by
	// NewReassembler.
	Frames int
	// PerSource is how many of them one source may have, 8 by default.
	PerSource int
	// Largest is the longest frame in bytes, by default the longest that is sent.
	Largest int
	// Lifetime is how long after its first segment a frame is given up, 100 ms by default.
	// Later segments do not make it longer.
	Lifetime clock.Time
}

// Limits and defaults of a ReassemblerConfig.
const (
	maxFrames      = 1024
	defaultFrames  = 64
	defaultSource  = 8
	defaultLife    = 100 * clock.Millisecond
	largestSegment = 1 << 16
)

// staleAfter is how many frames may have been begun after one that still misses segments. What
// is older lost them: its ID may come again and must not meet what is left of it.
const staleAfter = 64

// ReassemblyStats counts frames, not segments.
type ReassemblyStats struct {
	Completed  uint64
	Expired    uint64 // the lifetime was over
	Stale      uint64 // the sender was far ahead
	CrowdedOut uint64 // others took their place
	Broken     uint64 // a segment contradicted others, or the whole was none: see Reason
}

// A Reassembler puts the segments of frames together. It holds a fixed number of them, each for
// a limited time, and no source can take the places of others.
type Reassembler struct {
	config ReassemblerConfig
	parts  []partial
	stats  ReassemblyStats
}

// A partial is a frame of which segments are missing.
type partial struct {
	used   bool
	source uint64
	vswitch,
	id uint16
	began clock.Time

	checks  Checks
	fcs     bool
	have    uint32 // a bit for each segment
	size    int    // of all segments but the last, 0 while unknown
	last    int    // index of the last segment, -1 while unknown
	lastLen int
	buf     []byte
}

// NewReassembler makes one, with all the memory that it will have.
func NewReassembler(c ReassemblerConfig) (*Reassembler, error) {
	for _, d := range []struct {
		field *int
		value int
	}{{&c.Frames, defaultFrames}, {&c.PerSource, defaultSource}, {&c.Largest, maxFrame}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Lifetime == 0 {
		c.Lifetime = defaultLife
	}
	switch {
	case c.Frames < 1 || c.Frames > maxFrames:
		return nil, fmt.Errorf("encap: %d frames at once, not 1 to %d", c.Frames, maxFrames)
	case c.PerSource < 1:
		return nil, fmt.Errorf("encap: %d frames of a source, not 1 or more", c.PerSource)
	case c.Largest < Ethernet.MinLen() || c.Largest > largestSegment:
		return nil, fmt.Errorf("encap: frames of up to %d bytes, not %d to %d", c.Largest,
			Ethernet.MinLen(), largestSegment)
	case c.Lifetime < 0:
		return nil, fmt.Errorf("encap: a lifetime of %d ns", c.Lifetime)
	}
	r := &Reassembler{config: c, parts: make([]partial, c.Frames)}
	memory := make([]byte, c.Frames*c.Largest)
	for i := range r.parts {
		r.parts[i].buf = memory[i*c.Largest:][:c.Largest:c.Largest]
	}
	return r, nil
}

// Stats counts what became of frames.
func (r *Reassembler) Stats() ReassemblyStats { return r.stats }

// Held is how many frames are under way.
func (r *Reassembler) Held() (n int) {
	for i := range r.parts {
		if r.parts[i].used {
			n++
		}
	}
	return n
}

// NextDeadline is when the next frame is given up, 0 for never.
func (r *Reassembler) NextDeadline() (at clock.Time) {
	for i := range r.parts {
		if q := &r.parts[i]; q.used {
			at = clock.Sooner(at, q.began+r.config.Lifetime)
		}
	}
	return at
}

// HandleDeadline gives up what is too old.
func (r *Reassembler) HandleDeadline(now clock.Time) {
	for i := range r.parts {
		r.expired(&r.parts[i], now)
	}
}

// expired gives a frame up if it is too old, and reports whether its place is free.
func (r *Reassembler) expired(q *partial, now clock.Time) bool {
	if q.used && now-q.began >= r.config.Lifetime {
		r.stats.Expired++
		q.used = false
	}
	return !q.used
}

// Add takes a segment that came from a source, any number that stands for a peer. It returns
// the frame when that was the last one missing, which is good until the next call; else no
// frame, and a reason when the segment was of no use.
func (r *Reassembler) Add(now clock.Time, source uint64, p *Packet) (frame []byte, _ Reason) {
	q := r.find(now, source, p)
	reason := q.add(p)
	switch {
	case reason == Duplicate:
		return nil, reason
	case reason == OK && q.last >= 0 && q.have == 1<<(q.last+1)-1:
		q.used = false
		if frame, reason = q.finish(); reason == OK {
			r.stats.Completed++
			return frame, OK
		}
	case reason == OK:
		return nil, OK
	}
	q.used = false
	r.stats.Broken++
	return nil, reason
}

// find returns the frame that a segment is of, or a new one.
func (r *Reassembler) find(now clock.Time, source uint64, p *Packet) *partial {
	var found, free, oldest *partial // the oldest of this source
	mine := 0
	for i := range r.parts {
		q := &r.parts[i]
		switch {
		case r.expired(q, now):
			free = q
			continue
		case q.source != source:
			continue
		}
		if q.vswitch == p.Switch {
			switch ahead := int16(p.Segment.ID - q.id); {
			case ahead == 0:
				found = q
			case ahead > staleAfter:
				r.stats.Stale++
				q.used, free = false, q
				continue
			}
		}
		if mine++; oldest == nil || q.began < oldest.began {
			oldest = q
		}
	}
	switch {
	case found != nil:
		return found
	case mine >= r.config.PerSource:
		r.stats.CrowdedOut++
		free = oldest
	case free == nil:
		r.stats.CrowdedOut++
		free = r.victim()
	}
	*free = partial{
		used: true, source: source, vswitch: p.Switch, id: p.Segment.ID, began: now,
		checks: p.Checks, fcs: p.FCS, last: -1, buf: free.buf,
	}
	return free
}

// victim is the oldest frame of the source that has the most, when all places are taken.
func (r *Reassembler) victim() (v *partial) {
	most := 0
	for i := range r.parts {
		q, n := &r.parts[i], 0
		for j := range r.parts {
			if r.parts[j].source == q.source {
				n++
			}
		}
		if n > most || n == most && q.began < v.began {
			v, most = q, n
		}
	}
	return v
}

// add puts a segment in its place.
func (q *partial) add(p *Packet) Reason {
	n, i := p.Len(), int(p.Segment.Index)
	known := q.last >= 0
	switch {
	case q.have>>i&1 != 0:
		return q.again(p, i, n)
	case p.FCS != q.fcs, p.Checks != q.checks, known && i > q.last,
		p.Segment.More && (q.size != 0 && n != q.size || known && q.lastLen > n),
		!p.Segment.More && (known || q.have>>i != 0 || q.size != 0 && n > q.size):
		return Conflict
	}
	if !p.Segment.More {
		return q.addLast(p, i, n)
	}
	if (i+1)*n > len(q.buf) || known && q.last*n+q.lastLen > len(q.buf) {
		return TooLong
	}
	if q.size == 0 {
		q.size = n
		if known { // and waits at the end, because it was not known where it belongs
			copy(q.buf[q.last*n:], q.buf[len(q.buf)-q.lastLen:])
		}
	}
	p.CopyTo(q.buf[i*n:])
	q.have |= 1 << i
	return OK
}

// addLast puts the last segment in its place, which is known once there is another.
func (q *partial) addLast(p *Packet, i, n int) Reason {
	if i*q.size+n > len(q.buf) {
		return TooLong
	}
	q.last, q.lastLen = i, n
	p.CopyTo(q.buf[q.lastAt():])
	q.have |= 1 << i
	return OK
}

// lastAt is where the last segment lies.
func (q *partial) lastAt() int {
	if q.size == 0 && q.last > 0 {
		return len(q.buf) - q.lastLen
	}
	return q.last * q.size
}

// again compares a segment with the one that is there.
func (q *partial) again(p *Packet, i, n int) Reason {
	at, size := i*q.size, q.size
	if i == q.last {
		at, size = q.lastAt(), q.lastLen
	}
	k := len(p.Datagram)
	if n != size || p.Segment.More == (i == q.last) ||
		!bytes.Equal(q.buf[at:][:k], p.Datagram) || !bytes.Equal(q.buf[at+k:][:n-k], p.Tail) {
		return Conflict
	}
	return Duplicate
}

// finish looks at a frame that is whole.
func (q *partial) finish() ([]byte, Reason) {
	frame := q.buf[:q.last*q.size+q.lastLen]
	if q.fcs {
		n := len(frame) - fcsLen
		if n < Ethernet.MinLen() {
			return nil, TooShort
		}
		if crc32.ChecksumIEEE(frame[:n]) != binary.LittleEndian.Uint32(frame[n:]) {
			return nil, BadFCS
		}
		frame = frame[:n]
	}
	if r := Ethernet.check(0, len(frame)); r != OK {
		return nil, r
	}
	return frame, OK
}
