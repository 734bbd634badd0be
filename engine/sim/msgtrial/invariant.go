package msgtrial

import "xroce/engine/sim/campaign"

// An Invariant is a promise that must hold in every run, and a Violation one that did not hold.
type (
	Invariant = campaign.Invariant
	Violation = campaign.Violation
)

// The invariants.
const (
	// Once: each message that was posted is received once at most, and once exactly while its
	// connection lives; each message and each receive comes back once.
	Once Invariant = "M1 once"
	// Matching: a message goes to the receive that the order of posts says, of those that want
	// its tag and its sender, whatever protocol it and those before it take.
	Matching Invariant = "M2 matching"
	// Bytes: what is received is what was sent, and nothing around it is touched, nor anything
	// after it came back.
	Bytes Invariant = "M3 bytes"
	// Level: what is told of a message that was sent is true.
	Level Invariant = "M4 level"
	// Excuse: a connection ends for a reason that a rule knows, and what fails fails with it.
	Excuse Invariant = "M5 excuse"
	// Liveness: once there are no faults, all that can be done is done.
	Liveness Invariant = "M6 liveness"
	// Residue: in the end nothing is left: no memory, no message, no timer.
	Residue Invariant = "M7 residue"
	// Ready: no message finds the peer without a receive for it.
	Ready Invariant = "M8 ready"
	// Panic: nothing panics.
	Panic Invariant = "M9 panic"
	// Determinism: the same seed makes the same run.
	Determinism Invariant = "M10 determinism"
)
