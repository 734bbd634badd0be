package msgtrial

import (
	"fmt"
	"io"
	"strings"

	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

// keep is how many of the last events a failure shows.
const keep = 64

// A frameEvent is what the trace keeps of a frame.
type frameEvent struct {
	kind     sim.Kind
	from, to int
	n        int
	opcode   wire.Opcode
	destQP   uint32
	psn      wire.PSN
	syndrome wire.Syndrome // of an acknowledge
}

// readFrame reads the fields that matter of a frame, which may be damaged.
func readFrame(ev *sim.Event) frameEvent {
	f := frameEvent{kind: ev.Kind, from: nodeOf(ev.From), to: nodeOf(ev.To), n: len(ev.Frame)}
	const at = 14 + 20 + 8 // Ethernet, IPv4, UDP
	if len(ev.Frame) < at+wire.BTHLen+4 {
		return f
	}
	b := ev.Frame[at:]
	f.opcode = wire.Opcode(b[0])
	f.destQP = uint32(b[5])<<16 | uint32(b[6])<<8 | uint32(b[7])
	f.psn = wire.PSN(b[9])<<16 | wire.PSN(b[10])<<8 | wire.PSN(b[11])
	if f.opcode == wire.RCAck {
		f.syndrome = wire.Syndrome(b[wire.BTHLen])
	}
	return f
}

// String says what happened to which frame.
func (f *frameEvent) String() string {
	s := fmt.Sprintf("%d->%d %s %s qp 0x%06x psn 0x%06x %d bytes", f.from, f.to, f.kind, f.opcode,
		f.destQP, f.psn, f.n)
	if f.opcode == wire.RCAck {
		s += " " + f.syndrome.String()
	}
	return s
}

// An entry is an event: a frame, or a text that is made when somebody wants to read it.
type entry struct {
	at     roce.Time
	format string
	args   []any
	frame  frameEvent
}

// String returns the event with its time.
func (e *entry) String() string {
	text := e.frame.String()
	if e.format != "" {
		text = fmt.Sprintf(e.format, e.args...)
	}
	return fmt.Sprintf("%14s %s", clockTime(e.at), text)
}

// A trace is what happened: a hash of all of it, and the last events.
type trace struct {
	hash    uint64
	verbose io.Writer // gets every event, may be nil
	ring    [keep]entry
	n       int
}

// mix puts numbers into the hash (FNV-1a, by words). Addresses of memory and all that depends
// on them stay out of it.
func (t *trace) mix(words ...uint64) {
	h := t.hash
	for _, v := range words {
		h = (h ^ v) * 0x100000001b3
		h ^= h >> 32
	}
	t.hash = h
}

func (t *trace) add(e entry) {
	t.ring[t.n%keep] = e
	t.n++
	if t.verbose != nil {
		fmt.Fprintln(t.verbose, &e)
	}
}

// last returns the last events, the oldest first.
func (t *trace) last() []string {
	var list []string
	for i := max(0, t.n-keep); i < t.n; i++ {
		list = append(list, strings.TrimRight(t.ring[i%keep].String(), "\n"))
	}
	return list
}

// say takes an event as text. Its arguments must not change later.
func (w *world) say(format string, args ...any) {
	w.mix(uint64(w.clock.Now()), uint64(len(format)))
	w.add(entry{at: w.clock.Now(), format: format, args: args})
}

// frame takes what happened to a frame: into the trace, and as harm to both nodes.
func (w *world) frame(ev *sim.Event) {
	f := readFrame(ev)
	w.mix(uint64(f.kind)<<32|uint64(f.from)<<16|uint64(f.to), uint64(ev.At), uint64(f.n),
		uint64(f.opcode)<<32|uint64(f.destQP), uint64(f.psn)<<8|uint64(f.syndrome))
	w.add(entry{at: ev.At, frame: f})
	w.stats.Network[ev.Kind]++
	if f.from < 0 || f.to < 0 || f.from >= len(w.nodes) || f.to >= len(w.nodes) {
		return
	}
	if ev.Kind == sim.Sent && f.opcode == wire.RCAck && f.syndrome.IsRNRNAK() {
		w.stats.NotReady++
		w.notReady(&f)
	}
	if ev.Kind.Fault() {
		w.nodes[f.from].harm++
		w.nodes[f.to].harm++
	}
}
