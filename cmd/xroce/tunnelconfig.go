package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/userfile"
)

// Bounds of a file of flags.
const (
	maxConfigLine  = 4 << 10
	maxConfigLines = 4096
)

// configFlag is the flag that names such a file.
const configFlag = "config"

// readConfig sets flags from the file that --config names, if it does: lines of NAME = VALUE,
// where NAME is that of a flag, and comments behind a #. What the command line has is not
// changed.
func readConfig(name string, flags *pflag.FlagSet) error {
	if name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("--config: %w", userfile.Failed(err))
	}
	defer f.Close()
	return parseConfig(name, f, flags)
}

// parseConfig is readConfig of an open file; its errors begin with the name and the line.
func parseConfig(name string, r io.Reader, flags *pflag.FlagSet) error {
	given := map[string]bool{}
	flags.VisitAll(func(f *pflag.Flag) { given[f.Name] = f.Changed })
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxConfigLine)
	number := 0
	for lines.Scan() {
		if number++; number > maxConfigLines {
			return usagef("%s: more than %d lines", name, maxConfigLines)
		}
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		word, value, ok := strings.Cut(text, "=")
		word, value = strings.TrimSpace(word), strings.TrimSpace(value)
		f := flags.Lookup(word)
		switch {
		case !ok:
			return usagef("%s:%d: %q is not NAME = VALUE", name, number, text)
		case f == nil || word == configFlag || word == "help":
			return usagef("%s:%d: unknown word %q", name, number, word)
		case given[word]:
			continue
		}
		if err := flags.Set(word, value); err != nil {
			return usagef("%s:%d: %v", name, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", name, number+1, err)
	}
	return nil
}
