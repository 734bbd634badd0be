package cm

import (
	"strings"

	"xroce/roce/counter"
)

// A CounterID names one counter of a machine.
type CounterID uint8

// messages is the number of messages that are counted each.
const messages = CounterID(attributeEnd - AttributeREQ)

// Four counters of each message stand first, named as in the kernel
// (drivers/infiniband/core/cm.c, counter groups): cm_tx_msgs_req and so on.
const (
	firstTxMsgs       CounterID = iota * messages // sent, without repetitions
	firstTxRetries                                // sent again after a timeout or a duplicate
	firstRxMsgs                                   // received
	firstRxDuplicates                             // received again
	firstOther
)

// The other counters.
const (
	Timeouts CounterID = firstOther + iota
	HalfOpenDropped
	BacklogDropped
	OverDropped
	RequestsExpired
	NoListener
	StaleRejected
	RequestsRefused
	OutboxFull
	DropNotCM
	DropUnknown
	DropWrongSource
	DropWrongQPN
	DropState

	CounterCount // the number of counters, not one of them
)

// rows are the counters that are not of one message.
var rows = [CounterCount]struct{ name, unit, help string }{
	Timeouts:        {"timeouts", "events", "messages that were never answered"},
	HalfOpenDropped: {"half_open_dropped", "events", "requests dropped for newer ones"},
	BacklogDropped:  {"backlog_dropped", "events", "the same, because of their listener"},
	OverDropped:     {"over_dropped", "events", "ended connections forgotten for newer ones"},
	RequestsExpired: {"requests_expired", "events", "what the application never answered"},
	NoListener:      {"no_listener", "messages", "requests to what nobody offers"},
	StaleRejected:   {"stale_rejected", "messages", "of peers still remembered as connected"},
	RequestsRefused: {"requests_refused", "messages", "requests refused for what they say"},
	OutboxFull:      {"outbox_full", "messages", "not sent because too many waited"},
	DropNotCM:       {"drop_not_cm", "messages", "MADs not for a connection manager"},
	DropUnknown:     {"drop_unknown", "messages", "of a conversation that is not there"},
	DropWrongSource: {"drop_wrong_source", "messages", "from another address than the peer's"},
	DropWrongQPN:    {"drop_wrong_qpn", "messages", "for another QP than the connection's"},
	DropState:       {"drop_state", "messages", "that do not fit the conversation's state"},
}

// groups are the rows that each message has.
var groups = [firstOther / messages]struct{ name, help string }{
	{"tx_msgs_", "sent, repetitions apart: "},
	{"tx_retries_", "sent again: "},
	{"rx_msgs_", "received, with those received again: "},
	{"rx_duplicates_", "received again: "},
}

func txMsgs(a Attribute) CounterID    { return firstTxMsgs + CounterID(a-AttributeREQ) }
func txRetries(a Attribute) CounterID { return firstTxRetries + CounterID(a-AttributeREQ) }
func rxMsgs(a Attribute) CounterID    { return firstRxMsgs + CounterID(a-AttributeREQ) }
func rxDup(a Attribute) CounterID     { return firstRxDuplicates + CounterID(a-AttributeREQ) }

// Spec returns what the counter counts.
func (id CounterID) Spec() counter.Spec {
	if id >= firstOther {
		r := rows[id]
		return counter.Spec{Name: "cm_" + r.name, Unit: r.unit, Help: r.help}
	}
	g, a := groups[id/messages], AttributeREQ+Attribute(id%messages)
	return counter.Spec{
		Name: "cm_" + g.name + strings.ToLower(a.String()), Unit: "messages",
		Help: g.help + a.String(),
	}
}

// String returns the counter's name.
func (id CounterID) String() string {
	if id >= CounterCount {
		return "unknown"
	}
	return id.Spec().Name
}

// A CounterSet holds the value of every counter of a machine.
type CounterSet [CounterCount]uint64

// Inc adds one.
func (s *CounterSet) Inc(id CounterID) { s[id]++ }

// Counters returns the values.
func (m *Machine) Counters() CounterSet { return m.count }
