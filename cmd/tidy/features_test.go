package tidy

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

//go:generate go test -run TestFeatureTables -write-rows .

var writeRows = flag.Bool("write-rows", false, "write the tables in docs/testing.md anew")

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// TestFeatureTables: every row names tests that there are, and docs/testing.md lists
// the same.
func TestFeatureTables(t *testing.T) {
	tests := map[string]int{} // how many functions have the name
	for _, f := range files(t).files {
		if !f.isTest() {
			continue
		}
		for _, m := range testFunc.FindAllSubmatch(f.data, -1) {
			tests[string(m[1])]++
		}
	}
	for _, table := range featureTables {
		t.Run(table.mark, func(t *testing.T) {
			for _, finding := range rowFindings(table.rows, tests) {
				t.Error(finding)
			}
			checkList(t, table.mark, rowList(table.rows))
		})
	}
}

// rowFindings says which rows name no test, one that there is not, or one whose name is
// that of several.
func rowFindings(rows []featureRow, tests map[string]int) (list []string) {
	for _, row := range rows {
		names := strings.Fields(row.tests)
		if len(names) == 0 {
			list = append(list, fmt.Sprintf("row %s has no test: %s", row.id, row.what))
		}
		for _, name := range names {
			if n := tests[name]; n != 1 {
				list = append(list, fmt.Sprintf("row %s: %d tests are named %s", row.id, n, name))
			}
		}
	}
	return list
}

func TestFeatureRowsCanFail(t *testing.T) {
	tests := map[string]int{"TestOne": 1, "TestTwice": 2}
	for names, want := range map[string]int{
		"TestOne": 0, "": 1, "TestGone": 1, "TestTwice": 1, "TestOne TestGone TestTwice": 2,
	} {
		if got := rowFindings([]featureRow{{"R1", "what", names}}, tests); len(got) != want {
			t.Errorf("%q has findings %q, want %d", names, got, want)
		}
	}
}

// rowList is a table as Markdown.
func rowList(rows []featureRow) string {
	var list bytes.Buffer
	list.WriteString("| row | what | tests |\n|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&list, "| %s | %s | %s |\n", row.id, row.what,
			strings.Join(strings.Fields(row.tests), ", "))
	}
	return list.String()
}

// checkList compares a list with the one between its marks in docs/testing.md, or writes
// it there.
func checkList(t *testing.T, mark, list string) {
	t.Helper()
	begin := fmt.Sprintf("<!-- %s rows -->\n", mark)
	end := fmt.Sprintf("<!-- end of %s rows -->\n", mark)
	doc := filepath.Join(root, "docs", "testing.md")
	old, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(old), begin)
	have, after, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has no lines %q and %q", doc, begin, end)
	case *writeRows:
		text := before + begin + list + end + after
		if err := os.WriteFile(doc, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	case have != list:
		t.Errorf("%s: the list is old: go generate ./cmd/tidy", doc)
	}
}
