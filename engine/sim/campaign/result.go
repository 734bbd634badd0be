package campaign

import (
	"fmt"
	"strings"
)

// A Result is how a run ended. S is what the trial counts.
type Result[S any] struct {
	Seed      uint64
	Config    string     // every option, for people
	Violation *Violation // nil when every invariant held
	Hash      uint64     // of all events: the same seed has the same
	Last      []string   // the last events before a violation
	Replay    string     // the command that runs the seed again, and prints every event
	Stats     S
}

// String tells what failed and how to see it again, "" when nothing did.
func (r *Result[S]) String() string {
	if r.Violation == nil {
		return ""
	}
	return fmt.Sprintf("seed %d: %s\n%s%s\nreplay: %s\n", r.Seed, r.Violation, r.Config,
		strings.Join(r.Last, "\n"), r.Replay)
}
