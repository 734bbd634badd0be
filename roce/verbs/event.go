package verbs

// Event is an asynchronous event (AE), with the values of enum ibv_event_type and, from 32 on, of
// our own.
type Event uint8

// The events that this stack raises (IBA 11.6.3).
const (
	// EventCQErr says that a CQ overran; its queue pairs get EventQPFatal.
	EventCQErr Event = 0
	// EventQPFatal says that a QP went to ERR for a reason that no completion
	// tells.
	EventQPFatal Event = 1
	// EventQPReqErr says that the peer sent what it must not.
	EventQPReqErr Event = 2
	// EventQPAccessErr says that the peer reached for memory that is not its.
	EventQPAccessErr Event = 3
	// EventCommEst says that the first request came while the QP was in RTR.
	EventCommEst Event = 4
	// EventSQDrained says that a QP in SQD has finished what it had begun.
	EventSQDrained Event = 5
	// EventDeviceFatal says that the device is of no more use.
	EventDeviceFatal Event = 8
	// EventPortActive says that the link came up.
	EventPortActive Event = 9
	// EventPortErr says that the link went down.
	EventPortErr Event = 10
	// EventSRQErr says that an SRQ is of no more use: its receives complete to a CQ of
	// its own, being one for XRC, and that overran.
	EventSRQErr Event = 14
	// EventSRQLimitReached says that an SRQ has fewer receives than its limit.
	EventSRQLimitReached Event = 15
	// EventQPLastWQEReached says that a QP in ERR takes no more from its SRQ.
	EventQPLastWQEReached Event = 16
	// EventGIDChange says that the GID table changed.
	EventGIDChange Event = 18
	// EventQueueMissed says that packets of ours came on a receive queue that the device does
	// not have: the kernel has them. It is an event of the port.
	EventQueueMissed Event = 32

	eventCount = 33
)

var eventNames = [eventCount]string{
	EventCQErr:            "CQ error",
	EventQPFatal:          "local work queue catastrophic error",
	EventQPReqErr:         "invalid request local work queue error",
	EventQPAccessErr:      "local access violation work queue error",
	EventCommEst:          "communication established",
	EventSQDrained:        "send queue drained",
	EventDeviceFatal:      "local catastrophic error",
	EventPortActive:       "port active",
	EventPortErr:          "port error",
	EventSRQErr:           "SRQ catastrophic error",
	EventSRQLimitReached:  "SRQ limit reached",
	EventQPLastWQEReached: "last WQE reached",
	EventGIDChange:        "GID table change",
	EventQueueMissed:      "packets on a receive queue that is not taken",
}

// String returns the event in the words of ibv_event_type_str.
func (e Event) String() string {
	if int(e) < len(eventNames) && eventNames[e] != "" {
		return eventNames[e]
	}
	return "unknown"
}
