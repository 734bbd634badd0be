package msg

import "xroce/roce/counter"

// A CounterID names one counter of an endpoint.
type CounterID uint8

// The counters, in the order in which they are printed.
const (
	SentEager CounterID = iota
	SentProvisioned
	SentGet
	SentPut
	SentFragments
	SentActive
	SentFrames
	SentControl
	RecvFrames
	RecvControl
	BytesCopiedOut
	BytesCopiedIn
	BytesRead
	BytesWritten
	Unexpected
	DroppedLate
	Truncated
	CrowdedSends
	CancelledSends
	RefusedSends
	NotRegistered
	ProvisionRequests
	ProvisionRefused
	ProvisionFailed
	ProvisionLate
	ProvisionAsked
	ProvisionDenied
	ProvisionStale
	Shrunk
	Renewed
	RenewFailed
	KeepaliveProbes
	ActiveUnknown
	ProtocolErrors
	QuotaEnds
	StallEnds
	HellosRefused
	ByesReceived
	RailsRefused
	RailsLost
	Resumed
	SentAgain
	ChunksAgain

	CounterCount // the number of counters, not one of them
)

// rows say what each counter counts.
var rows = [CounterCount]struct{ name, unit, help string }{
	SentEager:         {"sent_eager", "messages", "that went in a small slot"},
	SentProvisioned:   {"sent_provision", "messages", "that went in a large slot"},
	SentGet:           {"sent_get", "messages", "announced, to be read by the peer"},
	SentPut:           {"sent_put", "messages", "announced, to be written by us"},
	SentFragments:     {"sent_frag", "messages", "announced, to go in parts through slots"},
	SentActive:        {"sent_active", "messages", "of all these, for a handler of the peer"},
	SentFrames:        {"tx_frames", "frames", "written to slots of peers"},
	SentControl:       {"tx_control", "messages", "control messages sent"},
	RecvFrames:        {"rx_frames", "frames", "that peers wrote to our slots"},
	RecvControl:       {"rx_control", "messages", "control messages received"},
	BytesCopiedOut:    {"copied_out_bytes", "bytes", "copied to buffers that are sent from"},
	BytesCopiedIn:     {"copied_in_bytes", "bytes", "copied from slots to receives"},
	BytesRead:         {"read_bytes", "bytes", "of messages, by RDMA READ to their receive"},
	BytesWritten:      {"written_bytes", "bytes", "of messages, by RDMA WRITE to their receive"},
	Unexpected:        {"unexpected", "messages", "kept because no receive was there"},
	DroppedLate:       {"dropped_late", "messages", "that nobody received of peers that are gone"},
	Truncated:         {"truncated", "messages", "longer than their receive"},
	CrowdedSends:      {"crowded", "messages", "announced because no slot was free for long"},
	CancelledSends:    {"cancelled", "messages", "taken back before they were received"},
	RefusedSends:      {"refused", "messages", "that the peer did not take"},
	NotRegistered:     {"not_registered", "messages", "in parts, as no memory was registered here"},
	ProvisionRequests: {"provision_requests", "requests", "for large slots, to peers"},
	ProvisionRefused:  {"provision_refused", "requests", "for large slots that peers refused"},
	ProvisionFailed:   {"provision_failed", "requests", "for large slots, no memory here"},
	ProvisionLate:     {"provision_late", "answers", "large slots that came too late"},
	ProvisionAsked:    {"provision_asked", "requests", "for large slots, of peers"},
	ProvisionDenied:   {"provision_denied", "requests", "for large slots that we refused"},
	ProvisionStale:    {"provision_stale", "requests", "for large slots, answered before"},
	Shrunk:            {"shrunk", "events", "large slots given up that nobody used"},
	Renewed:           {"renewed", "events", "small slots made under another key"},
	RenewFailed:       {"renew_failed", "events", "small slots that stay: no memory for others"},
	KeepaliveProbes:   {"keepalive_probes", "requests", "to silent peers"},
	ActiveUnknown:     {"active_unknown", "messages", "for a handler that is not there"},
	ProtocolErrors:    {"protocol_errors", "connections", "ended by what the peer did wrong"},
	QuotaEnds:         {"quota_ends", "connections", "ended: the peer wants too much memory"},
	StallEnds:         {"stall_ends", "connections", "ended because a message did not come"},
	HellosRefused:     {"hellos_refused", "connections", "not made: the peer speaks otherwise"},
	ByesReceived:      {"byes_received", "connections", "that the peer ended, and said why"},
	RailsRefused:      {"rails_refused", "rails", "of no session that there is"},
	RailsLost:         {"rails_lost", "rails", "lost, of connections with several"},
	Resumed:           {"resumed", "changes", "of the rail of frames and control messages"},
	SentAgain:         {"sent_again", "items", "frames and control messages, by another rail"},
	ChunksAgain:       {"chunks_again", "chunks", "of long messages, by another rail"},
}

// Spec returns what the counter counts.
func (id CounterID) Spec() counter.Spec {
	r := rows[id]
	return counter.Spec{Name: "msg_" + r.name, Unit: r.unit, Help: r.help}
}

// String returns the counter's name.
func (id CounterID) String() string {
	if id >= CounterCount {
		return "unknown"
	}
	return id.Spec().Name
}

// A CounterSet holds the value of every counter of an endpoint.
type CounterSet [CounterCount]uint64

// Inc adds one.
func (s *CounterSet) Inc(id CounterID) { s[id]++ }

// Add adds n, which is not negative.
func (s *CounterSet) Add(id CounterID, n int) { s[id] += uint64(n) }

// Snapshot returns the values of the counters as they are now.
func (e *Endpoint) Snapshot() CounterSet { return e.count }

// sentBy counts messages by their protocol.
var sentBy = [protocolCount]CounterID{
	Eager: SentEager, Provisioned: SentProvisioned, Get: SentGet, Put: SentPut,
	Fragments: SentFragments,
}
