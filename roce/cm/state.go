package cm

import "fmt"

// State is where a connection stands (IBA 12.9.7).
type State uint8

// The states. On the left those of the active side, which connects.
const (
	StateREQSent     State = iota // active: REQ sent
	StateMRAREQRcvd               // active: the peer sent an MRA
	StateREPRcvd                  // active: REP received, the owner is to answer
	StateMRAREPSent               // active: the same, and an MRA was sent
	StateREQRcvd                  // passive: REQ received, the owner is to answer
	StateMRAREQSent               // passive: the same, and an MRA was sent
	StateREPSent                  // passive: REP sent
	StateMRAREPRcvd               // passive: the peer sent an MRA
	StateEstablished              // both
	StateDREQSent                 // both: DREQ sent
	StateTimewait                 // both: over, but packets may still be under way
	StateGone                     // both: nothing is left

	stateEnd
)

var stateNames = [stateEnd]string{
	"REQ_SENT", "MRA_REQ_RCVD", "REP_RCVD", "MRA_REP_SENT", "REQ_RCVD", "MRA_REQ_SENT",
	"REP_SENT", "MRA_REP_RCVD", "ESTABLISHED", "DREQ_SENT", "TIMEWAIT", "GONE",
}

// String returns the name of the state.
func (s State) String() string {
	if s < stateEnd {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// states is a set of states.
type states uint16

func of(list ...State) (s states) {
	for _, state := range list {
		s |= 1 << state
	}
	return s
}

func (s states) has(state State) bool { return s>>state&1 != 0 }

// The sets that the machine asks for.
var (
	// halfOpen are those of a peer's request that count against the limit.
	halfOpen = of(StateREQRcvd, StateMRAREQSent, StateREPSent, StateMRAREPRcvd)
	// inBacklog are those of a request that counts against its listener's backlog.
	inBacklog = of(StateREQRcvd, StateMRAREQSent)
	// over are those of a connection that has ended and is still remembered.
	over = of(StateDREQSent, StateTimewait)
)

// transitions are the edges of the state graph: to which states each may go.
var transitions = [stateEnd]states{
	StateREQSent:     of(StateMRAREQRcvd, StateREPRcvd, StateTimewait, StateGone),
	StateMRAREQRcvd:  of(StateREPRcvd, StateTimewait, StateGone),
	StateREPRcvd:     of(StateMRAREPSent, StateEstablished, StateTimewait),
	StateMRAREPSent:  of(StateEstablished, StateTimewait),
	StateREQRcvd:     of(StateMRAREQSent, StateREPSent, StateGone),
	StateMRAREQSent:  of(StateREPSent, StateGone),
	StateREPSent:     of(StateMRAREPRcvd, StateEstablished, StateTimewait),
	StateMRAREPRcvd:  of(StateEstablished, StateTimewait),
	StateEstablished: of(StateDREQSent, StateTimewait),
	StateDREQSent:    of(StateTimewait),
	StateTimewait:    of(StateGone),
}
