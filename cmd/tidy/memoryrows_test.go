package tidy

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

//go:generate go test -run TestMemoryRows -write-rows .

var writeRows = flag.Bool("write-rows", false, "write the list in docs/testing.md anew")

// memoryRows are the things that memory must do, each with the tests whose names
// begin with "TestRow" and its id.
var memoryRows = []struct{ id, what string }{
	{"D1", "re-registration: translation, domain, access, in all combinations"},
	{"D2", "capabilities of memory windows are told, and true"},
	{"D3", "windows of type 1 and 2 are allocated, and of no use unbound"},
	{"D4", "type 1 is bound by the verb; its key rolls"},
	{"D5", "type 2B is bound by a work request; bounds, queue pair and domain are its own"},
	{"D6", "type 2A: the queue pair alone"},
	{"D7", "windows are invalidated here, by the peer, by deallocation"},
	{"D8", "a region with bound windows cannot go away"},
	{"D9", "indirect keys over lists of pieces"},
	{"D10", "layouts of layouts, to a limited depth, without cycles"},
	{"D11", "a layout by work request, good for the next one"},
	{"D12", "interleaved layouts, at the remote side too"},
	{"D13", "on-demand regions: nothing touched before it is accessed"},
	{"D14", "implicit on-demand regions: one key for the address space"},
	{"D15", "on-demand capabilities by transport and operation"},
	{"D16", "an on-demand region is deregistered like any"},
	{"D17", "advice: prefetch, for writing, without faults"},
	{"D18", "statistics of paging"},
	{"D19", "inline receive, which nobody can tell from another"},
	{"D20", "memory that the library allocates"},
	{"D21", "shared and device memory: refused"},
	{"E1", "a matrix column as one key"},
	{"E2", "several regions as one key"},
	{"E3", "a layout given to a region, by call and by work request"},
	{"E4", "layouts in every operation, at both ends"},
}

var rowTest = regexp.MustCompile(`(?m)^func (TestRow([DE][0-9]+)(?:[^0-9(]\w*)?)\(`)

// TestMemoryRows: every row has a test that is named after it, and docs/testing.md
// lists which.
func TestMemoryRows(t *testing.T) {
	tests := map[string][]string{}
	for _, f := range files(t).files {
		if !strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, m := range rowTest.FindAllSubmatch(f.data, -1) {
			tests[string(m[2])] = append(tests[string(m[2])], string(m[1]))
		}
	}
	var list bytes.Buffer
	list.WriteString("| row | what | tests |\n|---|---|---|\n")
	for _, row := range memoryRows {
		names := tests[row.id]
		if len(names) == 0 {
			t.Errorf("row %s has no test: %s", row.id, row.what)
		}
		slices.Sort(names)
		fmt.Fprintf(&list, "| %s | %s | %s |\n", row.id, row.what,
			strings.Join(slices.Compact(names), ", "))
		delete(tests, row.id)
	}
	for id, names := range tests {
		t.Errorf("%v: there is no row %s", names, id)
	}
	checkList(t, list.String())
}

// checkList compares the list with the one in docs/testing.md, or writes it there.
func checkList(t *testing.T, list string) {
	t.Helper()
	const begin, end = "<!-- memory rows -->\n", "<!-- end of memory rows -->\n"
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
