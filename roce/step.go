package roce

import "xroce/roce/counter"

// A Step is a check that a received packet passes through. The step at which a
// packet was refused tells why.
type Step uint8

// The steps, in the order in which a packet meets them.
const (
	stepAdmitted Step = iota
	stepState
	stepService
	stepSource
	stepPKey
	stepQKey
	stepICRC
	stepGhost
	stepFuture
	stepGap
	stepAfterGap
	stepReplay
	stepNoReceive
	stepRefused
	stepSequence
	stepSRQ
	stepRights
	stepResources
	stepLength
	stepFit
	stepRKey
	stepAlignment
	stepSync
	stepLocal
	stepPage
	stepResponse

	stepCount
)

var stepInfo = [stepCount]struct {
	name    string
	counter counter.ID // of the packets dropped in silence at this step
}{
	stepAdmitted:  {"admitted", counter.Count},
	stepState:     {"qp_state", counter.DropQPState},
	stepService:   {"service", counter.DropWrongService},
	stepSource:    {"source", counter.DropBadSource},
	stepPKey:      {"pkey", counter.DropBadPKey},
	stepQKey:      {"qkey", counter.DropBadQKey},
	stepICRC:      {"icrc", counter.DropBadICRC},
	stepGhost:     {"ghost_response", counter.DropGhostResponse},
	stepFuture:    {"future_response", counter.DropFutureResponse},
	stepGap:       {"psn_gap", counter.OutOfSequence},
	stepAfterGap:  {"after_gap", counter.DropAfterGap},
	stepReplay:    {"replay", counter.DropUnmatchedDuplicate},
	stepNoReceive: {"no_receive", counter.OutOfBuffer},
	stepRefused:   {"refused", counter.DropRefused},
	stepSequence:  {"opcode_sequence", counter.SentFatalNAK},
	stepSRQ:       {"srq", counter.SentFatalNAK},
	stepRights:    {"qp_rights", counter.SentFatalNAK},
	stepResources: {"resources", counter.SendRNR},
	stepLength:    {"length", counter.SentFatalNAK},
	stepFit:       {"receive_length", counter.DropTooLong},
	stepRKey:      {"rkey", counter.SentFatalNAK},
	stepAlignment: {"alignment", counter.SentFatalNAK},
	stepSync:      {"persistence", counter.SentFatalNAK},
	stepLocal:     {"local_memory", counter.DropLocalMemory},
	stepPage:      {"page", counter.DropPageAbsent},
	stepResponse:  {"response_order", counter.DropOutOfWindow},
}

// String returns the step's name.
func (s Step) String() string {
	if s >= stepCount {
		return "unknown"
	}
	return stepInfo[s].name
}

func (s Step) counter() counter.ID { return stepInfo[s].counter }
