package report

import (
	"fmt"
	"slices"
	"strings"

	"xroce/bench/interop/internal/cases"
)

// A cell is what came of the cases that share a row and a column.
type cell struct{ passed, failed, skipped int }

func (c *cell) add(v cases.Verdict) {
	switch v {
	case cases.Passed:
		c.passed++
	case cases.Failed:
		c.failed++
	case cases.Skipped:
		c.skipped++
	}
}

// String is the cell's text: "3/3" passed, "2/3", or "-" when all were skipped.
func (c cell) String() string {
	switch all := c.passed + c.failed; {
	case all == 0 && c.skipped == 0:
		return ""
	case all == 0:
		return "-"
	default:
		return fmt.Sprintf("%d/%d", c.passed, all)
	}
}

// row is what a line of the matrix is about.
func row(c cases.Case) string {
	transport := c.Transport
	if c.CM {
		transport += ", rdma_cm"
	}
	return fmt.Sprintf("| %s | %s | %s |", c.Tool, c.Role, transport)
}

// columns are those of the matrix.
var columns = []struct{ mtu, family int }{{1024, 4}, {1024, 6}, {4096, 4}, {4096, 6}}

// matrix is the table of the cases without faults.
func matrix(outcomes []cases.Outcome) string {
	var rows []string
	cells := map[string]*[4]cell{}
	for _, o := range outcomes {
		c := o.Case
		if c.Fault != cases.NoFault || c.Trace || c.MTU == 0 || c.Card != "" {
			continue
		}
		r := row(c)
		if cells[r] == nil {
			rows = append(rows, r)
			cells[r] = &[4]cell{}
		}
		for i, col := range columns {
			if col.mtu == c.MTU && col.family == c.Family {
				cells[r][i].add(o.Verdict)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b string) int { return toolIndex(a) - toolIndex(b) })
	var b strings.Builder
	b.WriteString("| tool | xroce is the | transport |")
	for _, col := range columns {
		fmt.Fprintf(&b, " %d, IPv%d |", col.mtu, col.family)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, r := range rows {
		b.WriteString(r)
		for _, c := range cells[r] {
			fmt.Fprintf(&b, " %s |", c)
		}
		b.WriteString("\n")
	}
	outcomes = slices.DeleteFunc(slices.Clone(outcomes), func(o cases.Outcome) bool {
		return o.Case.Card != ""
	})
	t := cases.Count(outcomes)
	packets := 0
	for _, o := range outcomes {
		if o.Case.MTU != 0 { // tshark reads again what the cases had
			packets += o.Packets
		}
	}
	fmt.Fprintf(&b, "\n%d passed, %d failed, %d skipped; %d packets.\n", t[cases.Passed],
		t[cases.Failed], t[cases.Skipped], packets)
	b.WriteString(reasons(outcomes))
	return b.String()
}

// reasons is the list of why cases were skipped, "" when none was.
func reasons(outcomes []cases.Outcome) string {
	var order []string
	times := map[string]int{}
	for _, o := range outcomes {
		if o.Verdict != cases.Skipped {
			continue
		}
		if times[o.Reason] == 0 {
			order = append(order, o.Reason)
		}
		times[o.Reason]++
	}
	if len(order) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nSkipped:\n\n")
	for _, reason := range order {
		b.WriteString(wrap(fmt.Sprintf("* %d: %s", times[reason], reason), 100))
	}
	return b.String()
}

// toolIndex is the place in the table of the tool that a row is about.
func toolIndex(row string) int {
	name := strings.Fields(row)[1]
	return cases.ToolIndex(name)
}

// faultTable is the table of the cases with faults.
func faultTable(outcomes []cases.Outcome) string {
	var b strings.Builder
	b.WriteString("| tool | xroce is the | fault | packets | lost | |\n|---|---|---|---|---|---|\n")
	for _, o := range outcomes {
		if o.Case.Fault == cases.NoFault || o.Case.Trace || o.Case.Card != "" {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %s |\n", o.Case.Tool, o.Case.Role, o.Case.Fault,
			o.Packets, o.Lost, o.Verdict)
	}
	return b.String()
}

// cardTable is the table of the cases on cards, by what xroce had of them.
func cardTable(outcomes []cases.Outcome) string {
	type kind struct {
		card, args, peer string
		mtu              int
	}
	var order []kind
	cells := map[kind]*cell{}
	packets := map[kind]int{}
	for _, o := range outcomes {
		c := o.Case
		if c.Card == "" || c.MTU == 0 || c.Fault.Resets() {
			continue
		}
		k := kind{c.Card, strings.Join(cases.CardArgs(c), " "), "Soft-RoCE", c.MTU}
		if c.Self {
			k.peer = "xroce"
		}
		if cells[k] == nil {
			order = append(order, k)
			cells[k] = &cell{}
		}
		cells[k].add(o.Verdict)
		packets[k] += o.Packets
	}
	var b strings.Builder
	b.WriteString("| card | queues | xroce has | path MTU | the peer is | passed | packets |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, k := range order {
		fmt.Fprintf(&b, "| %s | %d | `%s` | %d | %s | %s | %d |\n", k.card,
			cases.CardQueues(cases.Case{Card: k.card}), k.args, k.mtu, k.peer, cells[k], packets[k])
	}
	return b.String()
}
