package roce

import (
	"fmt"

	"xroce/roce/wire"
)

// TraceKind says what a trace event is.
type TraceKind uint8

// The kinds of trace events.
const (
	TraceReceived  TraceKind = iota // a packet passed the first checks
	TraceDropped                    // a packet was dropped, or refused, at Reason
	TraceSent                       // a packet was written
	TraceCompleted                  // a work request completed with Status
	TraceState                      // the QP went to State
	TraceDeadline                   // a timer expired

	traceKindCount
)

var traceKindNames = [traceKindCount]string{
	"received", "dropped", "sent", "completed", "state", "deadline",
}

// String returns the kind's name.
func (k TraceKind) String() string {
	if k >= traceKindCount {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return traceKindNames[k]
}

// A TraceEvent is one thing that happened to a QP. Fields that a kind does not
// name are zero.
type TraceEvent struct {
	Time   Time
	Kind   TraceKind
	Opcode wire.Opcode // received, dropped, sent
	PSN    wire.PSN    // received, dropped, sent
	Reason Reason      // dropped
	WRID   uint64      // completed
	Status Status      // completed
	State  State       // state
}

// String prints the event in one line.
func (e TraceEvent) String() string {
	head := fmt.Sprintf("%d %s", e.Time, e.Kind)
	switch e.Kind {
	case TraceReceived, TraceSent:
		return fmt.Sprintf("%s %s psn 0x%06x", head, e.Opcode, e.PSN)
	case TraceDropped:
		return fmt.Sprintf("%s %s psn 0x%06x at %s", head, e.Opcode, e.PSN, e.Reason)
	case TraceCompleted:
		return fmt.Sprintf("%s wr %d %s", head, e.WRID, e.Status)
	case TraceState:
		return fmt.Sprintf("%s %s", head, e.State)
	}
	return head
}

// A Trace keeps the last events of a QP. It belongs to the progress lock.
type Trace struct {
	ring []TraceEvent
	n    uint64 // events ever
	now  Time   // of the call under way
}

// NewTrace returns a trace of the last n events, at least one.
func NewTrace(n int) *Trace { return &Trace{ring: make([]TraceEvent, max(n, 1))} }

// SetTrace starts to record into t, nil to stop. It needs the progress lock.
func (q *QP) SetTrace(t *Trace) { q.trace = t }

// Trace returns what SetTrace set. It needs the progress lock.
func (q *QP) Trace() *Trace { return q.trace }

// Events returns what is kept, the oldest first, and how many older events were
// overwritten.
func (t *Trace) Events() (events []TraceEvent, lost uint64) {
	size := uint64(len(t.ring))
	first := t.n - min(t.n, size)
	for i := first; i < t.n; i++ {
		events = append(events, t.ring[i%size])
	}
	return events, first
}

func (t *Trace) add(e TraceEvent) {
	e.Time = t.now
	t.ring[t.n%uint64(len(t.ring))] = e
	t.n++
}

func (t *Trace) packet(k TraceKind, op wire.Opcode, psn wire.PSN) {
	t.add(TraceEvent{Kind: k, Opcode: op, PSN: psn})
}

func (t *Trace) dropped(p *wire.Packet, reason Reason) {
	t.add(TraceEvent{Kind: TraceDropped, Opcode: p.BTH.Opcode, PSN: p.BTH.PSN, Reason: reason})
}

func (t *Trace) completion(wc *Completion) {
	t.add(TraceEvent{Kind: TraceCompleted, WRID: wc.WRID, Status: wc.Status})
}

// traceAt tells a trace the time of the call that begins.
func (t *transport) traceAt(now Time) {
	if t.trace != nil {
		t.trace.now = now
	}
}
