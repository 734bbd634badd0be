package roce

import "xroce/roce/counter"

// A Reason is a check that a received packet passes through. The step at which a
// packet was refused tells why.
type Reason uint8

// The steps, in the order in which a packet meets them.
const (
	reasonAdmitted Reason = iota
	reasonState
	reasonService
	reasonSource
	reasonPKey
	reasonQKey
	reasonICRC
	reasonGhost
	reasonFuture
	reasonGap
	reasonAfterGap
	reasonReplay
	reasonNoReceive
	reasonRefused
	reasonSequence
	reasonSRQ
	reasonRights
	reasonResources
	reasonLength
	reasonFit
	reasonRKey
	reasonAlignment
	reasonSync
	reasonLocal
	reasonPage
	reasonResponse

	reasonCount
)

var reasonInfo = [reasonCount]struct {
	name    string
	counter counter.ID // of the packets dropped in silence at this step
}{
	reasonAdmitted:  {"admitted", counter.Count},
	reasonState:     {"qp_state", counter.DropQPState},
	reasonService:   {"service", counter.DropWrongService},
	reasonSource:    {"source", counter.DropBadSource},
	reasonPKey:      {"pkey", counter.DropBadPKey},
	reasonQKey:      {"qkey", counter.DropBadQKey},
	reasonICRC:      {"icrc", counter.DropBadICRC},
	reasonGhost:     {"ghost_response", counter.DropGhostResponse},
	reasonFuture:    {"future_response", counter.DropFutureResponse},
	reasonGap:       {"psn_gap", counter.OutOfSequence},
	reasonAfterGap:  {"after_gap", counter.DropAfterGap},
	reasonReplay:    {"replay", counter.DropUnmatchedDuplicate},
	reasonNoReceive: {"no_receive", counter.OutOfBuffer},
	reasonRefused:   {"refused", counter.DropRefused},
	reasonSequence:  {"opcode_sequence", counter.SentFatalNAK},
	reasonSRQ:       {"srq", counter.SentFatalNAK},
	reasonRights:    {"qp_rights", counter.SentFatalNAK},
	reasonResources: {"resources", counter.SendRNR},
	reasonLength:    {"length", counter.SentFatalNAK},
	reasonFit:       {"receive_length", counter.DropTooLong},
	reasonRKey:      {"rkey", counter.SentFatalNAK},
	reasonAlignment: {"alignment", counter.SentFatalNAK},
	reasonSync:      {"persistence", counter.SentFatalNAK},
	reasonLocal:     {"local_memory", counter.DropLocalMemory},
	reasonPage:      {"page", counter.DropPageAbsent},
	reasonResponse:  {"response_order", counter.DropOutOfWindow},
}

// String returns the step's name.
func (s Reason) String() string {
	if s >= reasonCount {
		return "unknown"
	}
	return reasonInfo[s].name
}

func (s Reason) counter() counter.ID { return reasonInfo[s].counter }
