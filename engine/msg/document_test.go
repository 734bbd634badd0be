package msg_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentedExamples: the Go lines of docs/messages.md stand in the examples, which are
// compiled.
func TestDocumentedExamples(t *testing.T) {
	const doc, begin, end = "../../docs/messages.md", "<!-- examples: engine/msg -->",
		"<!-- /examples -->"
	page, err := os.ReadFile(doc)
	must(t, err)
	_, rest, ok1 := strings.Cut(string(page), begin)
	part, _, ok2 := strings.Cut(rest, end)
	blocks := strings.Split(part, "```go\n")[1:]
	if !ok1 || !ok2 || len(blocks) < 5 {
		t.Fatalf("%s has %d examples", doc, len(blocks))
	}
	names, err := filepath.Glob("example*_test.go")
	must(t, err)
	var source strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		must(t, err)
		source.WriteString(flat(string(text)))
	}
	for _, b := range blocks {
		code, _, _ := strings.Cut(b, "```")
		if !strings.Contains(source.String(), flat(code)) {
			t.Errorf("this stands in no example:\n%s", code)
		}
	}
}

// flat takes the indentation away.
func flat(code string) string {
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}
