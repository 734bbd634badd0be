package play

import (
	"context"
	"fmt"
	"strings"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
)

// A host is what a case is played on and may die of: a VM. The error of Check says that
// it has.
type host interface {
	Check(ctx context.Context) error
}

// hosts are those of a lab.
func hosts(l *lab.Lab) []host {
	var list []host
	for _, vm := range l.VMs() {
		list = append(list, vm)
	}
	return list
}

// How often a case is tried. A host that is emulated in software may be silent for longer
// than retries last when its processor has other work, and the programs of others crash
// now and then: once is no verdict.
const (
	tries     = 2
	lateTries = 5
)

// insist tries a case until it does not fail, as often as it may, and says so with each
// try that is not the last. The error says that no case can be tried any more: the run
// is to end, or a host is gone.
func insist(
	ctx context.Context, try func() cases.Outcome, again func(cases.Outcome), hosts ...host,
) (cases.Outcome, error) {
	first := cases.Outcome{}
	for n := 1; ; n++ {
		o := try()
		if n > 1 {
			o = o.After(first, n)
		} else {
			first = o
		}
		if ctx.Err() != nil {
			return o, fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
		if o.Verdict != cases.Failed {
			return o, nil
		}
		for _, h := range hosts {
			if err := h.Check(ctx); err != nil {
				return o, err
			}
		}
		if o.Damaged || n >= lateTries || n >= tries && !o.Late {
			return o, nil
		}
		again(o)
	}
}

// silence are what programs say when the other end was silent for too long.
var silence = []string{
	"does not answer", "retry counter exceeded", "in time", "timed out",
	"RDMA_CM_EVENT_UNREACHABLE",
}

// isLate reports whether a case failed for lack of time: the limit was over, or an end
// says that the other one was silent.
func isLate(ctx context.Context, o cases.Outcome) bool {
	if ctx.Err() != nil {
		return true
	}
	for _, text := range silence {
		if strings.Contains(o.Reason+o.Output, text) {
			return true
		}
	}
	return false
}
