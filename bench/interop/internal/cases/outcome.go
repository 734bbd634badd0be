package cases

import (
	"fmt"
	"strings"

	"xroce/bench/interop/internal/dialogue"
)

// A Verdict is what came of a case.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
	Skipped Verdict = "skipped" // with the reason: one of the two cannot do it
)

// An Outcome is a case that was tried.
type Outcome struct {
	Case    Case    `json:"case"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"`
	Seconds float64 `json:"seconds"`
	Packets int     `json:"packets"` // RoCE packets on the cable, both directions
	Lost    int     `json:"lost"`    // of them, by the cable
	Output  string  `json:"output,omitempty"`
	// Compared is how many bytes on the cable were compared with the memory of xroce.
	Compared int `json:"compared,omitempty"`
	// Refused are the commands that the driver of a card refused, with what it said.
	Refused []string `json:"refused,omitempty"`
	// Counters are those of xroce after the card was reset, without those that are 0.
	Counters map[string]uint64 `json:"counters,omitempty"`
	// Damaged says that data or packets were wrong: no second try excuses that.
	Damaged bool `json:"damaged,omitempty"`
	// Late says that it failed for lack of time.
	Late bool `json:"late,omitempty"`
	// Panicked is how many VMs were booted anew during all tries: their kernels had panicked.
	Panicked int `json:"panicked,omitempty"`
	// Tries is how often the case was tried when that was more than once, and First why
	// the first try failed.
	Tries int    `json:"tries,omitempty"`
	First string `json:"first,omitempty"`
	// Differences are those from two Soft-RoCE hosts, of a Trace.
	Differences []dialogue.Difference `json:"differences,omitempty"`
}

// Line is an outcome as one line for people, and what was printed when it failed.
func (o Outcome) Line() string {
	s := fmt.Sprintf("%-7s %s", o.Verdict, o.Case.Name())
	if o.Verdict != Skipped {
		s += fmt.Sprintf(" (%.1f s, %d packets", o.Seconds, o.Packets)
		if o.Compared > 0 {
			s += fmt.Sprintf(", %d bytes compared", o.Compared)
		}
		s += ")"
	}
	if o.Reason != "" {
		s += ": " + o.Reason
	}
	if o.Tries > 1 {
		s += fmt.Sprintf(" at try %d, the first one: %s", o.Tries, o.First)
	}
	if o.Verdict == Failed && o.Output != "" {
		s += "\n    " + strings.ReplaceAll(strings.TrimSpace(o.Output), "\n", "\n    ")
	}
	return s
}

// After marks an outcome as that of try n, and says why the first one failed: what came
// of it is the verdict, but that it took more than once is told.
func (o Outcome) After(first Outcome, n int) Outcome {
	o.First, o.Tries = first.Reason, n
	return o
}

// Count counts outcomes by verdict.
func Count(outcomes []Outcome) map[Verdict]int {
	n := map[Verdict]int{}
	for _, o := range outcomes {
		n[o.Verdict]++
	}
	return n
}

// Comparisons counts the outcomes in which bytes were compared, and those bytes.
func Comparisons(outcomes []Outcome) (cases, bytes int) {
	for _, o := range outcomes {
		if o.Compared > 0 {
			cases++
			bytes += o.Compared
		}
	}
	return cases, bytes
}
