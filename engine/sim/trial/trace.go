package trial

import (
	"fmt"
	"io"

	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

// keep is how many of the last events a failure shows.
const keep = 48

// A frameEvent is what the trace keeps of a frame.
type frameEvent struct {
	kind     sim.Kind
	at       roce.Time
	from, to int
	n        int
	opcode   wire.Opcode
	destQP   uint32
	psn      wire.PSN
	ackReq   bool
	syndrome wire.Syndrome // of an acknowledge
}

// readFrame reads the fields that matter of a frame, which may be damaged.
func readFrame(ev *sim.Event) frameEvent {
	const ipv4, ipv6 = 14 + 20 + 8, 14 + 40 + 8
	f := frameEvent{
		kind: ev.Kind, at: ev.At, from: nodeOf(ev.From), to: nodeOf(ev.To), n: len(ev.Frame),
	}
	at := ipv4
	if len(ev.Frame) > 12 && ev.Frame[12] == 0x86 {
		at = ipv6
	}
	if len(ev.Frame) < at+wire.BTHLen+4 {
		return f
	}
	b := ev.Frame[at:]
	f.opcode = wire.Opcode(b[0])
	f.destQP = uint32(b[5])<<16 | uint32(b[6])<<8 | uint32(b[7])
	f.ackReq = b[8]&0x80 != 0
	f.psn = wire.PSN(b[9])<<16 | wire.PSN(b[10])<<8 | wire.PSN(b[11])
	if f.acknowledges() {
		f.syndrome = wire.Syndrome(b[wire.BTHLen])
	}
	return f
}

// acknowledges reports whether it is an ACK or NAK alone.
func (f *frameEvent) acknowledges() bool {
	return f.opcode == wire.RCAck || f.opcode == wire.XRCAck
}

func (f *frameEvent) String() string {
	s := fmt.Sprintf("%d->%d %s %s qp 0x%06x psn 0x%06x %d bytes", f.from, f.to, f.kind, f.opcode,
		f.destQP, f.psn, f.n)
	if f.acknowledges() {
		s += " " + f.syndrome.String()
	}
	if f.ackReq {
		s += " AckReq"
	}
	return s
}

// A trace is what happened: a hash of all of it, and the last events as text.
type trace struct {
	hash    uint64
	verbose io.Writer // gets every event, may be nil
	ring    [keep]entry
	n       int
}

// An entry is an event: a frame, or a text.
type entry struct {
	at    roce.Time
	text  string
	frame frameEvent
}

func (e *entry) String() string {
	if e.text != "" {
		return fmt.Sprintf("%14s %s", clockTime(e.at), e.text)
	}
	return fmt.Sprintf("%14s %s", clockTime(e.frame.at), e.frame.String())
}

// mix puts numbers into the hash (FNV-1a, by words).
func (t *trace) mix(words ...uint64) {
	h := t.hash
	for _, v := range words {
		h = (h ^ v) * 0x100000001b3
		h ^= h >> 32
	}
	t.hash = h
}

func (t *trace) add() *entry {
	e := &t.ring[t.n%keep]
	t.n++
	return e
}

// frame takes an event of the network. Addresses of memory and all that depends
// on them, payload and checksums, stay out of the hash.
func (t *trace) frame(f *frameEvent) {
	t.mix(uint64(f.kind)<<32|uint64(f.from)<<16|uint64(f.to), uint64(f.at), uint64(f.n),
		uint64(f.opcode)<<32|uint64(f.destQP), uint64(f.psn)<<8|uint64(f.syndrome))
	e := t.add()
	e.text, e.frame = "", *f
	if t.verbose != nil {
		fmt.Fprintln(t.verbose, e)
	}
}

// logging reports whether every event is written out.
func (t *trace) logging() bool { return t.verbose != nil }

// note takes an event as text.
func (t *trace) note(at roce.Time, format string, args []any) {
	e := t.add()
	e.at, e.text = at, fmt.Sprintf(format, args...)
	if t.verbose != nil {
		fmt.Fprintln(t.verbose, e)
	}
}

// last returns the last events, the oldest first.
func (t *trace) last() []string {
	var list []string
	for i := max(0, t.n-keep); i < t.n; i++ {
		list = append(list, t.ring[i%keep].String())
	}
	return list
}

// say takes an event as text.
func (w *world) say(format string, args ...any) { w.note(w.clock.Now(), format, args) }
