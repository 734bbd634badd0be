package msg

import (
	"encoding/json"
	"fmt"
	"io"

	"xroce/roce"
	"xroce/roce/msg"
)

// TraceKind says what a trace event is.
type TraceKind uint8

// The kinds of trace events.
const (
	TracePosted   TraceKind = iota // a message was posted
	TraceSent                      // a message is complete at its sender, or failed
	TraceReceived                  // a receive has its message, or failed
)

var traceKindNames = [...]string{"posted", "sent", "received"}

// String returns the kind's name.
func (k TraceKind) String() string {
	if int(k) >= len(traceKindNames) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return traceKindNames[k]
}

// A TraceEvent is what happened to one message of a connection. Fields that a kind does not name
// are zero.
type TraceEvent struct {
	Time     roce.Time // of the device's clock
	Kind     TraceKind
	Tag      uint64
	Length   int          // bytes of the message
	Protocol msg.Protocol // sent, received
	Why      msg.Reason   // sent: of the choice of the protocol
	Err      error        // sent, received
}

// A trace keeps the last events of a connection. It belongs to the endpoint's lock.
type trace struct {
	ring []TraceEvent
	n    uint64 // events ever
}

// StartTrace keeps the last n events of the connection from now on: messages that are posted, and
// that are complete at either end. It forgets an earlier trace; 0 stops. What goes over the wire
// for them is in the trace of the queue pair, and in a capture. An event takes some 72 bytes. A
// stream has no messages, and those of Inject are not traced.
func (c *Conn) StartTrace(n int) {
	e := c.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	c.trace = nil
	if n > 0 {
		c.trace = &trace{ring: make([]TraceEvent, n)}
	}
}

// Trace returns the events that are kept, the oldest first, and how many older ones were
// overwritten. There are none when no trace was started.
func (c *Conn) Trace() (events []TraceEvent, lost uint64) {
	e := c.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	t := c.trace
	if t == nil {
		return nil, 0
	}
	size := uint64(len(t.ring))
	lost = t.n - min(t.n, size)
	for i := lost; i < t.n; i++ {
		events = append(events, t.ring[i%size])
	}
	return events, lost
}

// note adds an event, if there is a trace. The caller holds the endpoint's lock.
func (c *Conn) note(e TraceEvent) {
	if t := c.trace; t != nil {
		e.Time = c.endpoint.dev.Now()
		t.ring[t.n%uint64(len(t.ring))] = e
		t.n++
	}
}

// traceLine is an event as it is exported. The names are stable.
type traceLine struct {
	Time     int64  `json:"time_ns"`
	Event    string `json:"event"`
	Tag      uint64 `json:"tag"`
	Length   int    `json:"length"`
	Protocol string `json:"protocol,omitempty"`
	Why      string `json:"why,omitempty"`
	Error    string `json:"error,omitempty"`
}

// WriteTrace writes the events that Trace returns as JSON, one object a line: time_ns (of the
// device's clock), event, tag and length in each, and with these events
//
//	sent       protocol, why it was chosen, error if there is one
//	received   protocol, error if there is one
func (c *Conn) WriteTrace(w io.Writer) error {
	events, _ := c.Trace()
	enc := json.NewEncoder(w)
	for i := range events {
		if err := enc.Encode(newTraceLine(&events[i])); err != nil {
			return err
		}
	}
	return nil
}

func newTraceLine(e *TraceEvent) traceLine {
	line := traceLine{Time: int64(e.Time), Event: e.Kind.String(), Tag: e.Tag, Length: e.Length}
	if e.Kind != TracePosted {
		line.Protocol = e.Protocol.String()
	}
	if e.Kind == TraceSent {
		line.Why = e.Why.String()
	}
	if e.Err != nil {
		line.Error = e.Err.Error()
	}
	return line
}
