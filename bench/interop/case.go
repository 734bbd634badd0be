package main

import (
	"fmt"
	"strings"
)

// A Role is what xroce is in a case.
type Role string

// The roles.
const (
	weServe   Role = "server" // xroce serves, the tool in the VM is the client
	theyServe Role = "client" // the tool serves, xroce is the client
)

// A Case is one conversation between xroce and a tool.
type Case struct {
	Tool      string   `json:"tool"` // the program in the VM
	Role      Role     `json:"role"` // of xroce
	Transport string   `json:"transport"`
	CM        bool     `json:"rdma_cm"`  // connected by rdma_cm, not by the tool over TCP
	MTU       int      `json:"path_mtu"` // bytes
	Family    int      `json:"family"`   // 4 or 6
	Size      int      `json:"size"`     // bytes of a message, 0 where the tool has one size
	Flags     []string `json:"flags,omitempty"`
	Fault     Fault    `json:"fault,omitempty"`
	// Trace makes it a comparison of its packets with those of two Soft-RoCE
	// hosts, of few messages.
	Trace bool `json:"trace,omitempty"`
}

// A Fault is what goes wrong while a case runs.
type Fault string

// The faults.
const (
	noFault Fault = ""
	loss    Fault = "loss"    // the cable loses one frame in a hundred
	restart Fault = "restart" // rxe0 is removed and made again
	refused Fault = "refused" // nobody listens where the client goes, of a Trace
)

// Name names a case, for people and for --only.
func (c Case) Name() string {
	parts := []string{c.Tool, string(c.Role)}
	if c.Transport != "" {
		parts = append(parts, strings.ToLower(c.Transport))
	}
	if c.CM && strings.HasPrefix(c.Tool, "ib_") {
		parts = append(parts, "rdma_cm")
	}
	if c.MTU > 0 {
		parts = append(parts, fmt.Sprintf("mtu%d", c.MTU), fmt.Sprintf("ipv%d", c.Family))
	}
	if c.Size > 0 {
		parts = append(parts, fmt.Sprintf("%dB", c.Size))
	}
	if len(c.Flags) > 0 {
		last := c.Flags[len(c.Flags)-1]
		parts = append(parts, strings.ToLower(strings.TrimLeft(last, "-")))
	}
	if c.Trace {
		parts = append(parts, "trace")
	}
	if c.Fault != noFault {
		parts = append(parts, string(c.Fault))
	}
	return strings.Join(parts, "/")
}

// A Verdict is what came of a case.
type Verdict string

// The verdicts.
const (
	passed  Verdict = "passed"
	failed  Verdict = "failed"
	skipped Verdict = "skipped" // with the reason: one of the two cannot do it
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
	// Damaged says that this comparison is what failed: no second try excuses that.
	Damaged bool `json:"damaged,omitempty"`
	// First is why the first of two tries failed, empty when there was only one.
	First string `json:"first,omitempty"`
	// Differences are those from two Soft-RoCE hosts, of a Trace.
	Differences []difference `json:"differences,omitempty"`
}

// line is an outcome as one line for people, and what was printed when it failed.
func (o Outcome) line() string {
	s := fmt.Sprintf("%-7s %s", o.Verdict, o.Case.Name())
	if o.Verdict != skipped {
		s += fmt.Sprintf(" (%.1f s, %d packets", o.Seconds, o.Packets)
		if o.Compared > 0 {
			s += fmt.Sprintf(", %d bytes compared", o.Compared)
		}
		s += ")"
	}
	if o.Reason != "" {
		s += ": " + o.Reason
	}
	if o.First != "" {
		s += " at the second try"
	}
	if o.Verdict == failed && o.Output != "" {
		s += "\n    " + strings.ReplaceAll(strings.TrimSpace(o.Output), "\n", "\n    ")
	}
	return s
}

// after marks an outcome as that of a second try. A host that is emulated in software
// may be silent for longer than the retries of a connection last, when its processor
// has other work: once is no verdict, but it is told.
func (o Outcome) after(first Outcome) Outcome {
	o.First = first.Reason
	return o
}

// count counts outcomes by verdict.
func count(outcomes []Outcome) map[Verdict]int {
	n := map[Verdict]int{}
	for _, o := range outcomes {
		n[o.Verdict]++
	}
	return n
}

// comparisons counts the outcomes in which bytes were compared, and those bytes.
func comparisons(outcomes []Outcome) (cases, bytes int) {
	for _, o := range outcomes {
		if o.Compared > 0 {
			cases++
			bytes += o.Compared
		}
	}
	return cases, bytes
}
