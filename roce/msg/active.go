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
// refuses it, and its sender is told StatusCancelled. NextReceived returns such a Receive when it
// is complete.
//
// A handler may call Conn.Send, and nothing else of the machine.
type Handler func(now clock.Time, m *Active) *Receive

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

// handle calls the handler of a message. It returns where that goes, nil for nowhere.
func (e *Endpoint) handle(now clock.Time, m Active) *Receive {
	h := e.handlers[m.Handler]
	if h == nil {
		e.count.Inc(ActiveUnknown)
		return nil
	}
	e.active = m
	r := h(now, &e.active)
	e.active = Active{}
	if r == nil || r.busy() {
		return nil
	}
	r.reset()
	return r
}

// takeActive hands an active message that came whole to its handler.
func (c *Conn) takeActive(now clock.Time, rec *Record, frame uint32, record int) {
	e := c.endpoint
	r := e.handle(now, Active{
		From: c, Handler: rec.Number, Tag: rec.Tag, Length: int(rec.Len), Data: rec.Payload,
	})
	if rec.Flags&RecordSync != 0 {
		c.sayMatched(frame, record)
	}
	if r != nil {
		e.deliver(c, r, rec.Tag, rec.Payload)
	}
}

// takeActiveRTS asks a handler where a message goes.
func (c *Conn) takeActiveRTS(now clock.Time, m *Control, a *arrival) {
	e := c.endpoint
	r := e.handle(now, Active{From: c, Handler: m.Number, Tag: m.Tag, Length: int(m.Len)})
	if r == nil {
		c.incoming[m.ID&idIndex] = nil
		c.say(Control{Type: TypeATS, ID: m.ID, Status: StatusCancelled})
		e.retireArrival(a)
		return
	}
	e.begin(a, r)
}
