package msgtrial

import (
	"fmt"

	"xroce/roce"
)

// An Invariant is a promise that must hold in every run.
type Invariant uint8

// The invariants.
const (
	// Once: each message that was posted is received once at most, and once exactly while its
	// connection lives; each message and each receive comes back once.
	Once Invariant = iota
	// Matching: a message goes to the receive that the order of posts says, of those that want
	// its tag and its sender, whatever protocol it and those before it take.
	Matching
	// Bytes: what is received is what was sent, and nothing around it is touched, nor anything
	// after it came back.
	Bytes
	// Level: what is told of a message that was sent is true.
	Level
	// Excuse: a connection ends for a reason that a rule knows, and what fails fails with it.
	Excuse
	// Liveness: once there are no faults, all that can be done is done.
	Liveness
	// Residue: in the end nothing is left: no memory, no message, no timer.
	Residue
	// Ready: no message finds the peer without a receive for it.
	Ready
	// Panic: nothing panics.
	Panic
	// Determinism: the same seed makes the same run.
	Determinism

	numInvariants
)

var invariantNames = [numInvariants]string{
	"M1 once", "M2 matching", "M3 bytes", "M4 level", "M5 excuse", "M6 liveness", "M7 residue",
	"M8 ready", "M9 panic", "M10 determinism",
}

// String returns the number and the name.
func (i Invariant) String() string {
	if i >= numInvariants {
		return "unknown invariant"
	}
	return invariantNames[i]
}

// A Violation is an invariant that did not hold.
type Violation struct {
	Invariant Invariant
	At        roce.Time
	What      string
}

// String says what was violated, when, and how.
func (v *Violation) String() string {
	return fmt.Sprintf("%s at %s: %s", v.Invariant, clockTime(v.At), v.What)
}
