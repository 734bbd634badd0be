package msg

// A Usage is what an endpoint holds: all of it is 0 when each connection is over, nothing waits
// for a receive, and what was asked of memory is answered.
type Usage struct {
	Slots      int64  // bytes of slots for peers
	Memory     int64  // bytes of these, of our copies of slots of peers, and of larger buffers
	Reading    int    // bytes that were asked for by READ and are not here
	Requests   int    // of memory, that nobody has taken
	Timers     int    // that are set
	Receives   int    // that wait for messages
	Unexpected int    // messages that wait for receives
	Kept       uint64 // bytes of these
	Waiting    int    // connections whose messages wait in their slots
	Ready      int    // connections that may have work
}

// Usage counts what the endpoint holds.
func (e *Endpoint) Usage() Usage {
	messages, bytes := e.match.Unexpected()
	waiting, _ := e.slots.Unexpected()
	return Usage{
		Slots: e.registered, Memory: e.held, Reading: e.pulling, Requests: e.requests.Len(),
		Timers: e.timers.Len(), Receives: e.match.Posted(), Unexpected: messages, Kept: bytes,
		Waiting: waiting + e.busy.Len(), Ready: e.ready.Len() + len(e.throttled),
	}
}
