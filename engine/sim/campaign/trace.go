package campaign

import (
	"fmt"
	"io"

	"xroce/roce"
)

// keep is how many of the last events a failure shows.
const keep = 64

// A Trace is what happened: a hash of all of it, and the last events.
type Trace struct {
	Log  io.Writer // gets every event, may be nil
	hash uint64
	ring [keep]entry
	n    int
}

// An entry is an event: a frame, or a text that is made when somebody wants to read it.
type entry struct {
	at     roce.Time
	format string
	args   []any
	frame  Frame
}

// String returns the event with its time.
func (e *entry) String() string {
	if e.format == "" {
		return fmt.Sprintf("%14s %s", ClockTime(e.at), &e.frame)
	}
	return fmt.Sprintf("%14s %s", ClockTime(e.at), fmt.Sprintf(e.format, e.args...))
}

// Mix puts numbers into the hash (FNV-1a, by words). Addresses of memory and all that depends
// on them stay out of it.
func (t *Trace) Mix(words ...uint64) {
	h := t.hash
	for _, v := range words {
		h = (h ^ v) * 0x100000001b3
		h ^= h >> 32
	}
	t.hash = h
}

// Events is how many events it has taken.
func (t *Trace) Events() int { return t.n }

// Hash is that of all that was mixed in.
func (t *Trace) Hash() uint64 { return t.hash }

// Frame takes what happened to a frame, and mixes it in but for payload and checksums.
func (t *Trace) Frame(f *Frame) {
	t.Mix(uint64(f.FromAdapter)<<56|uint64(f.ToAdapter)<<48|
		uint64(f.Kind)<<32|uint64(f.From)<<16|uint64(f.To), uint64(f.At), uint64(f.Len),
		uint64(f.Opcode)<<32|uint64(f.DestQP), uint64(f.PSN)<<8|uint64(f.Syndrome))
	t.add(entry{at: f.At, frame: *f})
}

// Note takes an event as text, which must not be empty. The arguments must not change later.
// It mixes nothing in.
func (t *Trace) Note(at roce.Time, format string, args ...any) {
	t.add(entry{at: at, format: format, args: args})
}

func (t *Trace) add(e entry) {
	kept := &t.ring[t.n%keep]
	*kept = e
	t.n++
	if t.Log != nil {
		fmt.Fprintln(t.Log, kept)
	}
}

// Last returns the last events, the oldest first.
func (t *Trace) Last() []string {
	var list []string
	for i := max(0, t.n-keep); i < t.n; i++ {
		list = append(list, t.ring[i%keep].String())
	}
	return list
}
