package report

import (
	"fmt"
	"strings"

	"xroce/bench/interop/internal/cases"
)

// resetTable is the table of the cases in which a card was reset.
func resetTable(outcomes []cases.Outcome) string {
	var b strings.Builder
	b.WriteString("| card | xroce has | path MTU | the peer is | what | counters of xroce | " +
		"refused | packets | |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, o := range outcomes {
		c := o.Case
		if !c.Fault.Resets() {
			continue
		}
		peer := "Soft-RoCE"
		if c.Self {
			peer = "xroce"
		}
		var counters []string
		for _, name := range cases.ResetCounters {
			if n := o.Counters[name]; n > 0 {
				counters = append(counters, fmt.Sprintf("`%s` %d", name, n))
			}
		}
		refused := make([]string, len(o.Refused))
		for i, text := range o.Refused {
			refused[i] = "`" + text + "`"
		}
		came := string(o.Verdict)
		if o.Verdict == cases.Skipped {
			came += ": " + o.Reason
		}
		fmt.Fprintf(&b, "| %s | `%s` | %d | %s | %s | %s | %s | %d | %s |\n", c.Card,
			strings.Join(cases.CardArgs(c), " "), c.MTU, peer, c.Fault,
			strings.Join(counters, ", "), strings.Join(refused, ", "), o.Packets, came)
	}
	return b.String()
}
