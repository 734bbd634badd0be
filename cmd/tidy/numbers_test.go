package tidy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNumbers: each row of the numbers of README.md stands in the page that the bench made of whole
// runs, as it is there.
func TestNumbers(t *testing.T) {
	readme := tableRows(t, "README.md", "## Numbers")
	page := tableRows(t, filepath.Join("docs", "numbers.md"), "# Medians")
	if len(readme) < 15 {
		t.Errorf("README.md has %d rows of numbers", len(readme))
	}
	for _, row := range readme {
		if !slices.Contains(page, row) {
			t.Errorf("README.md has a row that docs/numbers.md has not: %s", row)
		}
	}
}

// tableRows are the rows of tables from a heading to the next one of any kind.
func tableRows(t *testing.T, name, heading string) (rows []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), heading)
	if !ok {
		t.Fatalf("%s has no %q", name, heading)
	}
	after, _, _ = strings.Cut(after, "\n#")
	for line := range strings.Lines(after) {
		if strings.HasPrefix(line, "| ") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	return rows
}
