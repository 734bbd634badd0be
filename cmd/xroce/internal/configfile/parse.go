package configfile

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Flag is the flag that names such a file, which cannot name another.
const Flag = "config"

// Bounds of a file.
const (
	maxLine  = 4 << 10 // bytes
	maxLines = 4096
)

// A Mistake is what is wrong with what a file says. Other errors are of reading it.
type Mistake struct {
	File string // its name
	Line int    // counts from 1; 0 when it is the file as a whole
	What string
}

// Error implements error.
func (m *Mistake) Error() string {
	if m.Line == 0 {
		return fmt.Sprintf("%s: %s", m.File, m.What)
	}
	return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.What)
}

// Parse sets flags from what a file says, of at most 4096 lines of at most 4096 bytes. A flag that
// was set before, on the command line, is not changed. What is wrong is a [*Mistake]; flags of
// lines before that are set.
func Parse(name string, r io.Reader, flags *pflag.FlagSet) error {
	given := map[string]bool{}
	flags.VisitAll(func(f *pflag.Flag) { given[f.Name] = f.Changed })
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	number := 0
	for lines.Scan() {
		if number++; number > maxLines {
			return &Mistake{File: name, What: fmt.Sprintf("more than %d lines", maxLines)}
		}
		if what := set(lines.Text(), flags, given); what != "" {
			return &Mistake{name, number, what}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", name, number+1, err)
	}
	return nil
}

// set does what a line says, and returns what is wrong with it.
func set(line string, flags *pflag.FlagSet, given map[string]bool) (wrong string) {
	text, _, _ := strings.Cut(line, "#")
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	word, value, ok := strings.Cut(text, "=")
	word, value = strings.TrimSpace(word), strings.TrimSpace(value)
	switch f := flags.Lookup(word); {
	case !ok:
		return fmt.Sprintf("%q is not NAME = VALUE", text)
	case f == nil || word == Flag || word == "help":
		return fmt.Sprintf("unknown word %q", word)
	case given[word]:
		return ""
	}
	if err := flags.Set(word, value); err != nil {
		return err.Error()
	}
	return ""
}
