package engine

import (
	"encoding/json"
	"io"

	"xroce/roce"
)

// StartTrace keeps the last n events of the QP from now on, 0 to stop.
func (q *QP) StartTrace(n int) {
	q.device.queue.mu.Lock()
	defer q.device.queue.mu.Unlock()
	if n > 0 {
		q.machine.SetTrace(roce.NewTrace(n))
	} else {
		q.machine.SetTrace(nil)
	}
}

// Trace returns the events that are kept, the oldest first, and how many older
// ones were overwritten.
func (q *QP) Trace() (events []roce.TraceEvent, lost uint64) {
	q.device.queue.mu.Lock()
	defer q.device.queue.mu.Unlock()
	t := q.machine.Trace()
	if t == nil {
		return nil, 0
	}
	return t.Events()
}

// traceLine is an event as it is exported. Times are nanoseconds of the device's
// clock.
type traceLine struct {
	Time   int64  `json:"time_ns"`
	QPN    uint32 `json:"qpn"`
	Event  string `json:"event"`
	Opcode string `json:"opcode,omitempty"`
	PSN    *int64 `json:"psn,omitempty"`
	Step   string `json:"step,omitempty"`
	WRID   *int64 `json:"wr_id,omitempty"`
	Status string `json:"status,omitempty"`
	State  string `json:"state,omitempty"`
}

// WriteTrace writes the events that are kept as JSON lines.
func (q *QP) WriteTrace(w io.Writer) error {
	events, _ := q.Trace()
	enc := json.NewEncoder(w)
	for _, e := range events {
		line := traceLine{Time: int64(e.Time), QPN: q.QPN(), Event: e.Kind.String()}
		switch e.Kind {
		case roce.TraceDropped:
			line.Step = e.Step.String()
			fallthrough
		case roce.TraceReceived, roce.TraceSent:
			psn := int64(e.PSN)
			line.Opcode, line.PSN = e.Opcode.String(), &psn
		case roce.TraceCompleted:
			id := int64(e.WRID)
			line.WRID, line.Status = &id, e.Status.String()
		case roce.TraceState:
			line.State = e.State.String()
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
