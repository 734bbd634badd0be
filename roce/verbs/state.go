package verbs

import "fmt"

// State is the state of a QP, with the values of enum ibv_qp_state.
type State uint8

// The states of a QP.
const (
	StateReset State = iota
	StateInit
	StateRTR
	StateRTS
	StateSQD
	StateSQE
	StateErr

	stateCount
)

var stateNames = [stateCount]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

// String returns the state as verbs spells it.
func (s State) String() string {
	if s >= stateCount {
		return fmt.Sprintf("state %d", uint8(s))
	}
	return stateNames[s]
}

// Receives reports whether a QP in this state takes packets.
func (s State) Receives() bool { return s >= StateRTR && s <= StateSQE }

// Sends reports whether a QP in this state has a running send queue.
func (s State) Sends() bool { return s == StateRTS || s == StateSQD }

// TakesSends reports whether a QP in this state takes work requests, if only to
// flush them.
func (s State) TakesSends() bool { return s >= StateRTS }

// Known reports whether there is such a state.
func (s State) Known() bool { return s < stateCount }
