package msg

import "xroce/roce/clock"

// Active is an active message, as its handler sees it: one that no receive asks for. All of it
// is borrowed until the handler returns.
type Active struct {
	From    *Conn
	Handler uint16
	Tag     uint64
	Length  int    // bytes of the message
	Data    []byte // it, when it is here; nil of one that was announced
}

// A Handler is called with each active message of its number, in order with all messages of the
// peer. One that is here it may take from Data and return nil; or return a Receive, not in use,
// that the message is copied to. Of one that was announced, the Receive says where it goes; nil
// refuses it, and its sender is told the status, StatusCancelled if that is none of a refusal.
// NextReceived returns such a Receive when it is complete.
//
// A handler that returns StatusBusy has not taken the message: that stays where it is, and all
// behind it of the same peer wait, until Endpoint.Resume.
//
// A handler may call Conn.Send, and nothing else of the machine.
type Handler func(now clock.Time, m *Active) (*Receive, Status)

// Handle has active messages of a number handled, by none when h is nil. Those of a number without
// a handler are dropped and counted; those that were announced are refused.
func (e *Endpoint) Handle(number uint16, h Handler) {
	if h == nil {
		delete(e.handlers, number)
		return
	}
	if e.handlers == nil {
		e.handlers = map[uint16]Handler{}
	}
	e.handlers[number] = h
}

// handle calls the handler of a message. It returns where that goes, nil for nowhere, and what the
// sender is told, StatusBusy for nothing yet.
func (e *Endpoint) handle(now clock.Time, m Active) (*Receive, Status) {
	h := e.handlers[m.Handler]
	if h == nil {
		e.count.Inc(ActiveUnknown)
		return nil, StatusCancelled
	}
	e.active = m
	r, status := h(now, &e.active)
	e.active = Active{}
	switch {
	case status == StatusBusy:
		return nil, status
	case r == nil || r.busy():
		if status == StatusOK || !specs[TypeATS].statuses.has(status) {
			status = StatusCancelled
		}
		return nil, status
	}
	r.reset()
	return r, StatusOK
}

// takeActive hands an active message that came whole to its handler. It returns false when that
// does not take it now.
func (c *Conn) takeActive(now clock.Time, rec *Record, in *arrived) bool {
	e, way, frame, record := c.endpoint, in.ring.way(), in.frame, in.record
	r, status := e.handle(now, Active{
		From: c, Handler: rec.Number, Tag: rec.Tag, Length: int(rec.Len), Data: rec.Payload,
	})
	if status == StatusBusy {
		c.awaitHandler()
		return false
	}
	if rec.Flags&RecordSync != 0 {
		c.sayMatched(frame, record)
	}
	if r != nil {
		e.deliver(c, r, way, rec.Tag, rec.Payload)
	}
	return true
}

// takeActiveRTS asks a handler where a message goes. It returns false when that does not take it
// now.
func (c *Conn) takeActiveRTS(now clock.Time, m *Control, a *arrival) bool {
	e := c.endpoint
	r, status := e.handle(now, Active{From: c, Handler: m.Number, Tag: m.Tag, Length: int(m.Len)})
	if r != nil {
		e.begin(a, r)
		return true
	}
	c.incoming[m.ID&idIndex] = nil
	e.retireArrival(a)
	if status == StatusBusy {
		c.awaitHandler()
		return false
	}
	c.say(Control{Type: TypeATS, ID: m.ID, Status: status})
	return true
}
