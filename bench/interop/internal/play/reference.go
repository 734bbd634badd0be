package play

import (
	"context"
	"fmt"
	"strings"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
)

// reference runs a case between two Soft-RoCE hosts, the first one in our role.
func reference(
	ctx context.Context, p *lab.Pair, t *cases.Tool, c cases.Case,
) (wrong, output string) {
	servesAt, other := p.VMs[1], p.VMs[0]
	if c.Role == cases.WeServe {
		servesAt, other = other, servesAt
	}
	serve, call := t.Reference(c)
	var ends [2]lab.End
	defer func() {
		for _, e := range ends {
			if e.Done != nil {
				output += fmt.Sprintf("--- %s\n%s\n", e.Name, strings.TrimSpace(e.Output()))
			}
		}
	}()
	var err error
	if ends[0], err = lab.InVM(servesAt, "server", serve); err != nil {
		return err.Error(), ""
	}
	if err := awaitListener(ctx, servesAt, t, c, ends[0]); err != nil {
		ends[0].Kill()
		return err.Error(), ""
	}
	if ends[1], err = lab.InVM(other, "client", call); err != nil {
		return err.Error(), ""
	}
	if c.Fault == cases.Refused {
		return turnedAway(ctx, ends), ""
	}
	return lab.Finish(ctx, ends), ""
}
