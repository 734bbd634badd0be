package engine

import (
	"encoding/json"
	"io"

	"xroce/roce"
)

// StartTrace keeps the last n events of the QP from now on: packets received,
// dropped and sent, completions, states and timers. It forgets an earlier trace;
// 0 stops. A trace takes some 48 bytes an event, and a few nanoseconds.
func (q *QP) StartTrace(n int) {
	var trace *roce.Trace
	if n > 0 {
		trace = roce.NewTrace(n)
	}
	defer q.lock().mu.Unlock()
	q.core.SetTrace(trace)
}

// Trace returns the events that are kept, the oldest first, and how many older
// ones were overwritten. There are none when no trace was started.
func (q *QP) Trace() (events []roce.TraceEvent, lost uint64) {
	defer q.lock().mu.Unlock()
	trace := q.core.Trace()
	if trace == nil {
		return nil, 0
	}
	return trace.Events()
}

// traceLine is an event as it is exported. The names are stable.
type traceLine struct {
	Time   int64   `json:"time_ns"`
	QPN    uint32  `json:"qpn"`
	Event  string  `json:"event"`
	Opcode string  `json:"opcode,omitempty"`
	PSN    *uint32 `json:"psn,omitempty"`
	Step   string  `json:"step,omitempty"`
	WRID   *uint64 `json:"wr_id,omitempty"`
	Status string  `json:"status,omitempty"`
	State  string  `json:"state,omitempty"`
}

// WriteTrace writes the events that Trace returns as JSON, one object a line:
// time_ns (of the device's clock), qpn and event in each, and with these events
//
//	received, sent   opcode, psn
//	dropped          opcode, psn, step (the check that refused the packet)
//	completed        wr_id, status
//	state            state
//	deadline         nothing more
func (q *QP) WriteTrace(w io.Writer) error {
	events, _ := q.Trace()
	enc := json.NewEncoder(w)
	for i := range events {
		if err := enc.Encode(newTraceLine(q.QPN(), &events[i])); err != nil {
			return err
		}
	}
	return nil
}

func newTraceLine(qpn uint32, e *roce.TraceEvent) traceLine {
	line := traceLine{Time: int64(e.Time), QPN: qpn, Event: e.Kind.String()}
	switch e.Kind {
	case roce.TraceReceived, roce.TraceSent, roce.TraceDropped:
		psn := uint32(e.PSN)
		line.Opcode, line.PSN = e.Opcode.String(), &psn
		if e.Kind == roce.TraceDropped {
			line.Step = e.Reason.String()
		}
	case roce.TraceCompleted:
		line.WRID, line.Status = &e.WRID, e.Status.String()
	case roce.TraceState:
		line.State = e.State.String()
	}
	return line
}
