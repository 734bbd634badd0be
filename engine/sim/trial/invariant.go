package trial

import "xroce/engine/sim/campaign"

// An Invariant is a promise that must hold in every run, and a Violation one that did not hold.
type (
	Invariant = campaign.Invariant
	Violation = campaign.Violation
)

// The invariants.
const (
	// Completion: every work request makes exactly one completion, in the
	// order of its queue; an unsignaled one none, unless it fails.
	Completion Invariant = "I1 completion"
	// Memory: every byte is what the model says, and the bytes around what may
	// be written were not touched.
	Memory Invariant = "I2 memory"
	// Delivery: messages arrive in order, each once, with their length and
	// immediate data; what was acknowledged has arrived.
	Delivery Invariant = "I3 delivery"
	// Atomics: each is executed exactly once.
	Atomics Invariant = "I4 atomics"
	// Read: the data of a READ is what the peer's memory held in between.
	Read Invariant = "I5 read"
	// Status: an error has a cause that calls for it, both ends know, and all
	// later requests are flushed.
	Status Invariant = "I6 status"
	// Liveness: work finishes or fails within the time that the attributes of
	// the connection allow, and no timer acts before what came by then was looked at.
	Liveness Invariant = "I7 liveness"
	// Conservation: windows and queues stay within their bounds, and at rest
	// both ends agree and hold nothing.
	Conservation Invariant = "I8 conservation"
	// Residue: nothing is left after Close.
	Residue Invariant = "I9 residue"
	// Counters: they equal what the network saw, to the packet.
	Counters Invariant = "I10 counters"
	// Panic: nothing panics.
	Panic Invariant = "I11 panic"
	// Determinism: the same seed makes the same run.
	Determinism Invariant = "I12 determinism"
)
