package cc

// An Algorithm says which Controller a flow has.
type Algorithm uint8

// The algorithms.
const (
	// None sends as fast as it can. It answers marks of a switch for the peer all the same.
	None Algorithm = iota
	// AlgorithmDCQCN reacts to CNPs; see DCQCN.
	AlgorithmDCQCN
	// AlgorithmSwift reacts to delay; see Swift.
	AlgorithmSwift

	algorithms // how many there are
)

var algorithmNames = [algorithms]string{"none", "dcqcn", "swift"}

// Known reports whether there is such an algorithm.
func (a Algorithm) Known() bool { return a < algorithms }

// Marks reports whether a switch is to be told, by ECT(0) in the IP header (RFC 3168), that
// it may mark packets rather than drop them.
func (a Algorithm) Marks() bool { return a == AlgorithmDCQCN }

// String returns the name, in lower case.
func (a Algorithm) String() string {
	if !a.Known() {
		return "unknown"
	}
	return algorithmNames[a]
}
