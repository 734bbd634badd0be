package counter

// An ID names one counter.
type ID uint8

// The counters of the transport, in the order they are printed.
const (
	SentPkts ID = iota
	RcvdPkts
	SentBytes
	RcvdBytes
	DuplicateRequest
	OutOfSequence
	RcvdRNR
	SendRNR
	PacketSeqErr
	SentSeqNAK
	SentFatalNAK
	RcvdFatalNAK
	BadResponse
	AckDeferred
	LocalAckTimeout
	ImpliedNAK
	RetryExceeded
	RNRRetryExceeded
	Retransmits
	SendErr
	RDMASends
	RDMARecvs
	CQOverrun
	OutOfBuffer
	HeldEarly
	TailProbes
	Keepalives
	DatagramTooLong
	PageRNR
	PageStalls
	NPECNMarked
	NPCNPSent
	RPCNPHandled
	RPCNPIgnored
	LinkDowned
	DropUnknownQPN
	DropNotLocal
	DropNoGID
	DropMulticast
	DropQPState
	DropWrongService
	DropBadSource
	DropBadPKey
	DropBadQKey
	DropBadICRC
	DropGhostResponse
	DropFutureResponse
	DropUnmatchedDuplicate
	DropOutOfWindow
	DropAfterGap
	DropRefused
	DropTooLong
	DropLocalMemory
	DropPageAbsent

	Count // the number of counters, not one of them
)

// A Spec says what a counter counts.
type Spec struct {
	Name string // snake_case, stable: scripts and dashboards match it
	Unit string // what one count is
	Help string // one sentence
}

var specs = [Count]Spec{
	SentPkts:               {"sent_pkts", "packets", "RoCE packets given to the link"},
	RcvdPkts:               {"rcvd_pkts", "packets", "RoCE packets with a right ICRC"},
	SentBytes:              {"sent_bytes", "bytes", "bytes of those sent, from Ethernet to ICRC"},
	RcvdBytes:              {"rcvd_bytes", "bytes", "bytes of those received"},
	DuplicateRequest:       {"duplicate_request", "packets", "requests seen before, by PSN"},
	OutOfSequence:          {"out_of_sequence", "packets", "requests ahead of the expected PSN"},
	RcvdRNR:                {"rcvd_rnr_err", "packets", "RNR NAKs received"},
	SendRNR:                {"send_rnr_err", "packets", "RNR NAKs sent"},
	PacketSeqErr:           {"packet_seq_err", "packets", "PSN sequence NAKs received"},
	SentSeqNAK:             {"sent_seq_nak", "packets", "PSN sequence NAKs sent"},
	SentFatalNAK:           {"sent_fatal_nak", "packets", "NAKs sent that end the QP"},
	RcvdFatalNAK:           {"rcvd_fatal_nak", "packets", "NAKs received that end the QP"},
	BadResponse:            {"bad_response_err", "packets", "answers that fit no request, which end the QP"},
	AckDeferred:            {"ack_deferred", "packets", "ACKs saved because a later one covers them"},
	LocalAckTimeout:        {"local_ack_timeout_err", "events", "local ACK timer expiries"},
	ImpliedNAK:             {"implied_nak_seq_err", "events", "READ responses found missing by a later answer"},
	RetryExceeded:          {"retry_exceeded_err", "events", "QPs that used up retry_cnt"},
	RNRRetryExceeded:       {"retry_rnr_exceeded_err", "events", "QPs that used up rnr_retry"},
	Retransmits:            {"retransmits", "packets", "request packets sent again"},
	SendErr:                {"send_err", "events", "work requests failed by a local check"},
	RDMASends:              {"rdma_sends", "messages", "SEND messages completed by the requester"},
	RDMARecvs:              {"rdma_recvs", "messages", "messages that completed a receive"},
	CQOverrun:              {"cq_overrun", "events", "completions that found no room in their CQ"},
	OutOfBuffer:            {"out_of_buffer", "packets", "dropped because no receive was posted"},
	HeldEarly:              {"held_early", "packets", "packets kept until those before them came"},
	TailProbes:             {"tail_probes", "packets", "packets sent again only to be answered"},
	Keepalives:             {"keepalives", "packets", "packets that ask a silent peer whether it is there"},
	DatagramTooLong:        {"datagram_too_long", "messages", "datagrams above the MTU, not sent"},
	PageRNR:                {"page_rnr", "packets", "RNR NAKs sent because a page was absent"},
	PageStalls:             {"page_stalls", "events", "times a QP waited for a page of its own"},
	NPECNMarked:            {"np_ecn_marked_roce_packets", "packets", "packets of data that a switch marked (CE)"},
	NPCNPSent:              {"np_cnp_sent", "packets", "congestion notifications sent"},
	RPCNPHandled:           {"rp_cnp_handled", "packets", "congestion notifications that lowered a rate"},
	RPCNPIgnored:           {"rp_cnp_ignored", "packets", "congestion notifications to QPs without a rate"},
	LinkDowned:             {"link_downed", "events", "times the interface was found down while sending"},
	DropUnknownQPN:         {"drop_unknown_qpn", "packets", "no such QP"},
	DropNotLocal:           {"drop_not_local", "packets", "the destination is no address of the device"},
	DropNoGID:              {"drop_no_gid", "packets", "not sent because their source GID was removed"},
	DropMulticast:          {"drop_multicast", "packets", "multicast QPN without an attached QP"},
	DropQPState:            {"drop_qp_state", "packets", "the QP is not in a state that receives"},
	DropWrongService:       {"drop_wrong_service", "packets", "opcode of another transport service"},
	DropBadSource:          {"drop_bad_source", "packets", "addresses are not those of the connection"},
	DropBadPKey:            {"drop_bad_pkey", "packets", "P_Key does not match"},
	DropBadQKey:            {"drop_bad_qkey", "packets", "Q_Key is not that of the QP"},
	DropBadICRC:            {"drop_bad_icrc", "packets", "invariant CRC is wrong"},
	DropGhostResponse:      {"drop_ghost_response", "packets", "answers to what was answered before"},
	DropFutureResponse:     {"drop_future_response", "packets", "answers to what was never sent"},
	DropUnmatchedDuplicate: {"drop_unmatched_duplicate", "packets", "duplicate READs no longer remembered"},
	DropOutOfWindow:        {"drop_out_of_window", "packets", "READ responses behind a gap"},
	DropAfterGap:           {"drop_after_gap", "packets", "requests behind a gap already reported"},
	DropRefused:            {"drop_refused", "packets", "UC packets that RC would have refused"},
	DropTooLong:            {"drop_too_long", "packets", "longer than the receive they met"},
	DropLocalMemory:        {"drop_local_memory", "packets", "their receive names memory that is not the QP's"},
	DropPageAbsent:         {"drop_page_absent", "packets", "a page for them was absent; reliable ones come again"},
}

// Spec returns what the counter counts.
func (id ID) Spec() Spec { return specs[id] }

// String returns the counter's name.
func (id ID) String() string {
	if id >= Count {
		return "unknown"
	}
	return specs[id].Name
}

// A Set holds the value of every counter. The zero value is ready for use.
// It is not safe for concurrent use.
type Set [Count]uint64

// Inc adds one.
func (s *Set) Inc(id ID) { s[id]++ }

// Add adds n.
func (s *Set) Add(id ID, n uint64) { s[id] += n }

// Merge adds every counter of o.
func (s *Set) Merge(o *Set) {
	for i, v := range o {
		s[i] += v
	}
}
