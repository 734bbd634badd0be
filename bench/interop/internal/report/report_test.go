package report

import (
	"os"
	"strings"
	"testing"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/dialogue"
)

// The tables in the document are those of this plan: what is in it was run.
func TestDocumentHasThePlan(t *testing.T) {
	text, err := os.ReadFile("../../../../" + documentFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range dialogue.Explained {
		// One that a run did not meet is not there. What a run met follows.
		flat := strings.Join(strings.Fields(string(text)), " ")
		if strings.Contains(flat, name(e)) && !strings.Contains(flat, item(e)) {
			t.Errorf("%s does not explain %s as this program does", documentFile, e.What)
		}
	}
	outcomes := make([]cases.Outcome, 0, len(cases.Plan()))
	for _, c := range cases.Plan() {
		outcomes = append(outcomes, cases.Outcome{Case: c, Verdict: cases.Passed})
	}
	for _, table := range []struct {
		text string
		keys int // cells that say what a row is about
	}{
		{matrix(outcomes), 3},
		{faultTable(outcomes), 3},
		{traceTable(outcomes), 2},
		{cardTable(outcomes), 5},
		{resetTable(outcomes), 5},
	} {
		for line := range strings.Lines(table.text) {
			cells := strings.Split(line, "|")
			if len(cells) <= table.keys || strings.HasPrefix(line, "|-") {
				continue
			}
			row := strings.Join(cells[:table.keys+1], "|") + "|"
			if !strings.Contains(string(text), "\n"+row) {
				t.Errorf("%s has no row %s: run --update-docs", documentFile, row)
			}
		}
	}
}

func TestReplacePart(t *testing.T) {
	text := "a\n<!-- x: written by go run ./bench/interop --update-docs -->\nold\n" +
		"<!-- end of x -->\nb\n"
	got, err := replacePart(text, "x", "new\n")
	if err != nil || got != strings.Replace(text, "old", "new", 1) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := replacePart(text, "y", ""); err == nil {
		t.Error("a part that is not there was replaced")
	}
}

func TestCell(t *testing.T) {
	var c cell
	for _, step := range []struct {
		verdict cases.Verdict
		want    string
	}{{cases.Skipped, "-"}, {cases.Passed, "1/1"}, {cases.Failed, "1/2"}, {cases.Passed, "2/3"}} {
		if c.add(step.verdict); c.String() != step.want {
			t.Errorf("%s, not %s", c, step.want)
		}
	}
}

func TestReasons(t *testing.T) {
	outcomes := []cases.Outcome{
		{Verdict: cases.Skipped, Reason: "two"},
		{Verdict: cases.Passed},
		{Verdict: cases.Skipped, Reason: "one"},
		{Verdict: cases.Failed, Reason: "three"},
		{Verdict: cases.Skipped, Reason: "two"},
	}
	if got := reasons(outcomes); got != "\nSkipped:\n\n* 2: two\n* 1: one\n" {
		t.Errorf("%q", got)
	}
	if got := reasons(outcomes[1:2]); got != "" {
		t.Errorf("%q", got)
	}
}
