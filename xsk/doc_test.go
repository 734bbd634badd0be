package xsk

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocNamesTests holds the promises of doc.go to tests that exist.
func TestDocNamesTests(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "asavie/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(b)
		}
	}
	names := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(doc), -1)
	if len(names) < 30 {
		t.Errorf("doc.go names %d tests, want at least 30", len(names))
	}
	for _, n := range names {
		if !strings.Contains(tests.String(), "func "+n+"(t *testing.T)") {
			t.Errorf("doc.go names %s, which does not exist", n)
		}
	}
}
