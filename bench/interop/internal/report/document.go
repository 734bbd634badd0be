package report

import (
	"fmt"
	"os"
	"strings"

	"xroce/bench/interop/internal/cases"
)

// documentFile is written into, seen from the root of the repository.
const documentFile = "docs/interop.md"

// Marks of the parts of the document that a run writes.
const (
	beginMark = "<!-- %s: written by go run ./bench/interop --update-docs -->"
	endMark   = "<!-- end of %s -->"
)

// Update writes what came of a whole run into docs/interop.md. It works in the root of the
// repository.
func Update(outcomes []cases.Outcome) error {
	text, err := os.ReadFile(documentFile)
	if err != nil {
		return fmt.Errorf("%w: --update-docs works in the root of the repository", err)
	}
	out := string(text)
	for name, part := range map[string]string{
		"matrix": matrix(outcomes), "faults": faultTable(outcomes), "traces": traceTable(outcomes),
		"cards": cardTable(outcomes), "resets": resetTable(outcomes),
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
