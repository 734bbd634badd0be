package cm

import "fmt"

// An ID names a conversation of a machine: it is the local communication ID of a
// connection, or the request ID of a lookup. 0 names none.
type ID uint32

// EventType says what happened. The names are those of enum rdma_cm_event_type.
type EventType uint8

// The events.
const (
	// EventConnectRequest says that a peer wants a connection: Accept or Reject.
	EventConnectRequest EventType = iota
	// EventConnectResponse says that the peer accepted: move the QP to RTS and
	// call Establish, or Reject.
	EventConnectResponse
	// EventEstablished says that the active end is ready, too, or was: to the passive end
	// it comes before each EventDisconnected. Private data of an RTU that was lost is missing.
	EventEstablished
	// EventRejected says that the peer refused, Event.Reason tells why.
	EventRejected
	// EventUnreachable says that there was no answer in time, or, with
	// ReasonNoResources, that newer requests took the place of this one. A lookup
	// ends with it.
	EventUnreachable
	// EventDisconnected says that the connection is over. Event.Reason is not
	// ReasonNone when that came as a REJ.
	EventDisconnected
	// EventTimewaitExit is the last event of a connection: its ID and its QP
	// number are free.
	EventTimewaitExit
	// EventSIDRRequest says that a peer looks for a datagram QP: RespondSIDR.
	EventSIDRRequest
	// EventSIDRResponse is the SIDR_REP to Lookup, its last event.
	EventSIDRResponse

	eventEnd
)

var eventNames = [eventEnd]string{
	"CONNECT_REQUEST", "CONNECT_RESPONSE", "ESTABLISHED", "REJECTED", "UNREACHABLE",
	"DISCONNECTED", "TIMEWAIT_EXIT", "SIDR_REQUEST", "SIDR_RESPONSE",
}

// String returns the name of the event.
func (t EventType) String() string {
	if t < eventEnd {
		return eventNames[t]
	}
	return fmt.Sprintf("event %d", uint8(t))
}

// An Event tells the owner of the queue pairs what happened.
type Event struct {
	Type EventType
	ID   ID

	// Of a request:
	Listener ListenerID
	Service  ServiceID
	IP       IPHeader // when Service.IP; the addresses are those of Path
	Path     Path     // where the request came from, and the answer goes

	// Of a connection request:
	Transport Transport
	// Params are those of a CONNECT_RESPONSE. In a CONNECT_REQUEST RQPSN is
	// missing, since it is ours to choose, and MaxRdAtomic and MaxDestRdAtomic are
	// what the peer offers and wants: what is accepted may be less.
	Params QPParams

	Reason Reason // of REJECTED, UNREACHABLE and DISCONNECTED
	Info   []byte // additional information of a REJ, may be nil

	// Of a SIDR_RESPONSE:
	Status SIDRStatus
	QPN    uint32
	QKey   uint32

	// Private is the private data that the message had, in full length, nil when
	// there was no message: lengths and ends are the application's business.
	Private []byte
}

// tell queues an event. A connection has at most one of each type.
func (m *Machine) tell(e Event) { m.events = append(m.events, e) }

// NextEvent returns the oldest event that was not taken yet. The owner takes all
// of them after each other call; they wait as long as it does not.
func (m *Machine) NextEvent() (Event, bool) {
	if m.taken == len(m.events) {
		return Event{}, false
	}
	e := m.events[m.taken]
	m.events[m.taken] = Event{}
	if m.taken++; m.taken == len(m.events) {
		m.events, m.taken = m.events[:0], 0
	}
	return e, true
}
