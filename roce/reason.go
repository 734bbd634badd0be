package roce

import "xroce/roce/counter"

// A Reason is the check at which a received packet was dropped or refused.
type Reason uint8

// The checks, in the order in which a packet meets them.
const (
	reasonAdmitted Reason = iota
	reasonState
	reasonService
	reasonSource
	reasonPKey
	reasonQKey
	reasonICRC
	reasonGhost // a response to what was acknowledged before: IBA's ghost acknowledge
	reasonFuture
	reasonGap
	reasonAfterGap
	reasonReplay
	reasonNoReceive
	reasonRefused
	reasonFlush // behind a FLUSH that is not done
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
	reasonSRQError
	reasonPage
	reasonResponse

	reasonCount
)

var reasonInfo = [reasonCount]struct {
	name    string
	counter counter.ID // of the packets dropped for it, without a NAK
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
	reasonFlush:     {"flush", counter.SendRNR},
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
	reasonSRQError:  {"srq_error", counter.SentFatalNAK},
	reasonPage:      {"page", counter.DropPageAbsent},
	reasonResponse:  {"response_order", counter.DropOutOfWindow},
}

// String returns the reason's name.
func (s Reason) String() string {
	if s >= reasonCount {
		return "unknown"
	}
	return reasonInfo[s].name
}

func (s Reason) counter() counter.ID { return reasonInfo[s].counter }
