package play

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
	"xroce/bench/softroce"
)

// A host is what a case is played on and may die of: a VM. The error of Check says that
// it has; Reboot makes one that has died anew.
type host interface {
	Check(ctx context.Context) error
	Reboot(ctx context.Context) error
}

// asHosts are those of a lab.
func asHosts(list ...[]lab.Host) (hosts []host) {
	for _, h := range slices.Concat(list...) {
		hosts = append(hosts, h)
	}
	return hosts
}

// A Player plays cases. Not for concurrent use.
type Player struct {
	// Again is told of tries that are not the last.
	Again func(cases.Outcome)
	// Reboots is how many VMs more may be booted anew after their kernel panicked. One that dies
	// when it is 0, or in another way, is the last of the run.
	Reboots int
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
func (p *Player) insist(
	ctx context.Context, try func() cases.Outcome, hosts ...host,
) (cases.Outcome, error) {
	first, panics := cases.Outcome{}, 0
	for n := 1; ; n++ {
		o := try()
		var gone error
		if ctx.Err() == nil && o.Verdict == cases.Failed {
			gone = p.attend(ctx, &o, hosts)
		}
		panicked := o.Panicked > 0
		panics += o.Panicked
		o.Panicked = panics
		if n > 1 {
			o = o.After(first, n)
		} else {
			first = o
		}
		if ctx.Err() != nil {
			return o, fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
		if gone != nil || o.Verdict != cases.Failed {
			return o, gone
		}
		if o.Damaged || n >= lateTries || n >= tries && !o.Late && !panicked {
			return o, nil
		}
		p.Again(o)
	}
}

// attend looks after the hosts of a case that failed. Those whose kernel panicked are booted
// anew if they may be, and the outcome says so: the case failed by that. The error is that of
// a host that stays gone.
func (p *Player) attend(ctx context.Context, o *cases.Outcome, hosts []host) error {
	for _, h := range hosts {
		err := h.Check(ctx)
		if errors.Is(err, softroce.ErrPanic) && p.Reboots > 0 {
			p.Reboots--
			o.Panicked++
			o.Reason = "the kernel of a VM panicked: " + o.Reason
			o.Output = strings.TrimSpace(o.Output) + "\n" + err.Error()
			err = h.Reboot(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// silence are what programs say when the other end was silent for too long.
var silence = []string{
	"does not answer", "retry counter exceeded", "in time", "timed out",
	"RDMA_CM_EVENT_UNREACHABLE", "RDMA_CM_EVENT_ADDR_ERROR", "no neighbour answers", "i/o timeout",
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
