package trial

import (
	"fmt"

	"xroce/roce"
)

// An Invariant is a promise that must hold in every run.
type Invariant uint8

// The invariants.
const (
	// Completion: every work request makes exactly one completion, in the
	// order of its queue; an unsignaled one none, unless it fails.
	Completion Invariant = iota
	// Memory: every byte is what the model says, and the bytes around what may
	// be written were not touched.
	Memory
	// Delivery: messages arrive in order, each once, with their length and
	// immediate data; what was acknowledged has arrived.
	Delivery
	// Atomics: each is executed exactly once.
	Atomics
	// Read: the data of a READ is what the peer's memory held in between.
	Read
	// Status: an error has a cause that calls for it, both ends know, and all
	// later requests are flushed.
	Status
	// Liveness: work finishes or fails within the time that the attributes of
	// the connection allow, and no timer acts before what came by then was looked at.
	Liveness
	// Conservation: windows and queues stay within their bounds, and at rest
	// both ends agree and hold nothing.
	Conservation
	// Residue: nothing is left after Close.
	Residue
	// Counters: they equal what the network saw, to the packet.
	Counters
	// Panic: nothing panics.
	Panic
	// Determinism: the same seed makes the same run.
	Determinism

	numInvariants
)

var invariantNames = [numInvariants]string{
	"I1 completion", "I2 memory", "I3 delivery", "I4 atomics", "I5 read", "I6 status",
	"I7 liveness", "I8 conservation", "I9 residue", "I10 counters", "I11 panic",
	"I12 determinism",
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

// clockTime prints a virtual time in microseconds.
func clockTime(t roce.Time) string { return fmt.Sprintf("%.3fus", float64(t)/1000) }
