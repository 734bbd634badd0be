package report

import (
	"fmt"
	"slices"
	"strings"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/dialogue"
)

// over says what a trace goes over.
func over(c cases.Case) string {
	parts := []string{c.Transport}
	if c.CM {
		parts = append(parts, "rdma_cm")
	}
	if c.Fault != cases.NoFault {
		parts = append(parts, string(c.Fault))
	}
	return fmt.Sprintf("%s, %d, IPv%d", strings.Join(parts, ", "), c.MTU, c.Family)
}

// traceTable is the table of the compared dialogues, and the reasons for the
// differences that there are.
func traceTable(outcomes []cases.Outcome) string {
	var b strings.Builder
	b.WriteString("| tool | xroce is the | over | packets | differences | |\n" +
		"|---|---|---|---|---|---|\n")
	seen := map[int][]string{} // values, by the place of what explains them
	for _, o := range outcomes {
		if !o.Case.Trace {
			continue
		}
		var names []string
		for _, d := range o.Differences {
			if !slices.Contains(names, d.What) {
				names = append(names, d.What)
			}
			values := fmt.Sprintf("%s, not %s", d.Ours, d.Reference)
			if i := dialogue.ExplainedBy(o.Case.Tool, d); !slices.Contains(seen[i], values) {
				seen[i] = append(seen[i], values)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %s |\n", o.Case.Tool, o.Case.Role, over(o.Case),
			o.Packets, strings.Join(names, ", "), o.Verdict)
	}
	b.WriteString("\n")
	for i, e := range dialogue.Explained {
		if values := seen[i]; values != nil {
			b.WriteString(wrap(fmt.Sprintf("%s Here: %s.", item(e), some(values)), 100))
		}
	}
	return b.String()
}

// item is the explanation in the list below the table.
func item(e dialogue.Explanation) string { return name(e) + ": " + e.Why }

// name is what an item begins with.
func name(e dialogue.Explanation) string {
	if e.Tools == nil {
		return "* **" + e.What + "**"
	}
	return fmt.Sprintf("* **%s** (%s)", e.What, strings.Join(e.Tools, ", "))
}

// shownValues is how many values of a difference are told.
const shownValues = 3

// some lists the first values of many.
func some(values []string) string {
	if len(values) > shownValues {
		values = append(slices.Clone(values[:shownValues]), "and so on")
	}
	return strings.Join(values, "; ")
}
