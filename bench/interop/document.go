package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// documentFile is written into, seen from the root of the repository.
const documentFile = "docs/interop.md"

// Marks of the parts of the document that a run writes.
const (
	beginMark = "<!-- %s: written by go run ./bench/interop --update-docs -->"
	endMark   = "<!-- end of %s -->"
)

// updateDocs writes what came of a run into the document.
func updateDocs(outcomes []Outcome) error {
	text, err := os.ReadFile(documentFile)
	if err != nil {
		return fmt.Errorf("%w: --update-docs works in the root of the repository", err)
	}
	out := string(text)
	for name, part := range map[string]string{
		"matrix": matrix(outcomes), "faults": faultTable(outcomes), "traces": traceTable(outcomes),
	} {
		if out, err = replacePart(out, name, part); err != nil {
			return err
		}
	}
	return os.WriteFile(documentFile, []byte(out), 0o644)
}

// replacePart puts a part between its marks.
func replacePart(text, name, part string) (string, error) {
	begin, end := fmt.Sprintf(beginMark, name), fmt.Sprintf(endMark, name)
	before, rest, ok := strings.Cut(text, begin+"\n")
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("%s has no part %s", documentFile, name)
	}
	return before + begin + "\n" + part + end + after, nil
}

// A cell is what came of the cases that share a row and a column.
type cell struct{ passed, failed, skipped int }

func (c *cell) add(v Verdict) {
	switch v {
	case passed:
		c.passed++
	case failed:
		c.failed++
	case skipped:
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
func row(c Case) string {
	transport := c.Transport
	if c.CM {
		transport += ", rdma_cm"
	}
	return fmt.Sprintf("| %s | %s | %s |", c.Tool, c.Role, transport)
}

// columns are those of the matrix.
var columns = []struct{ mtu, family int }{{1024, 4}, {1024, 6}, {4096, 4}, {4096, 6}}

// matrix is the table of the cases without faults.
func matrix(outcomes []Outcome) string {
	var rows []string
	cells := map[string]*[4]cell{}
	for _, o := range outcomes {
		c := o.Case
		if c.Fault != noFault || c.Trace || c.MTU == 0 {
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
	t := count(outcomes)
	packets := 0
	for _, o := range outcomes {
		if o.Case.MTU != 0 { // tshark reads again what the cases had
			packets += o.Packets
		}
	}
	fmt.Fprintf(&b, "\n%d passed, %d failed, %d skipped; %d packets.\n", t[passed], t[failed],
		t[skipped], packets)
	b.WriteString(reasons(outcomes))
	return b.String()
}

// reasons is the list of why cases were skipped, "" when none was.
func reasons(outcomes []Outcome) string {
	var order []string
	times := map[string]int{}
	for _, o := range outcomes {
		if o.Verdict != skipped {
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
	return slices.IndexFunc(tools, func(t tool) bool { return t.name == name })
}

// faultTable is the table of the cases with faults.
func faultTable(outcomes []Outcome) string {
	var b strings.Builder
	b.WriteString("| tool | xroce is the | fault | packets | lost | |\n|---|---|---|---|---|---|\n")
	for _, o := range outcomes {
		if o.Case.Fault == noFault || o.Case.Trace {
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %s |\n", o.Case.Tool, o.Case.Role, o.Case.Fault,
			o.Packets, o.Lost, o.Verdict)
	}
	return b.String()
}

// wrap breaks the text of a list item into lines.
func wrap(text string, columns int) string {
	var b strings.Builder
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > columns {
			b.WriteString(line + "\n")
			line = "  " + word
			continue
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}
