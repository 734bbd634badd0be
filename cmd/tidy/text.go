package tidy

import (
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxColumns is the length limit of a line; a tab counts as tabColumns.
const (
	maxColumns = 100
	tabColumns = 4
)

// textRules hold for all text files, Go or not.
var textRules = []rule{
	{"control characters", checkControl},
	{"columns", checkColumns},
	{"unfinished work", checkMarks},
	{"machine paths", checkPaths},
	{"capabilities", checkCapabilities},
}

// wideFiles may have lines of any length.
var wideFiles = map[string]string{
	"go.sum":                  "written by the go command",
	"roce/counter/counter.go": "one counter a line: name, unit, help",
}

// checkControl refuses carriage returns, invalid UTF-8, and control and
// direction-override characters, which a reviewer cannot see.
func checkControl(s *source, report report) {
	line := 1
	for data := s.data; len(data) > 0; {
		r, n := utf8.DecodeRune(data)
		data = data[n:]
		switch {
		case r == '\n':
			line++
		case r == '\t':
		case r == utf8.RuneError && n == 1:
			report(line, "invalid UTF-8")
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\ufeff':
			report(line, "control character %U", r)
		}
	}
}

// checkColumns limits the length of lines that people write and read.
func checkColumns(s *source, report report) {
	if !prose(s) || s.generated() || s.inTestdata() || wideFiles[s.path] != "" {
		return
	}
	for i, text := range s.lines() {
		if n := columns(text); n > maxColumns && !unbreakable(s, text) {
			report(i+1, "%d columns, the limit is %d", n, maxColumns)
		}
	}
}

// prose reports whether people wrote the file line by line.
func prose(s *source) bool {
	switch path.Ext(s.path) {
	case ".go", ".c", ".h", ".md", ".sh", ".yml", ".py":
		return true
	}
	return path.Base(s.path) == "Makefile" || s.under(".ci")
}

// columns is the width of a line as an editor shows it.
func columns(text string) int {
	n := 0
	for _, r := range text {
		if r == '\t' {
			n += tabColumns - n%tabColumns
		} else {
			n++
		}
	}
	return n
}

// unbreakable reports whether a line has to be as long as it is: a row of a
// Markdown table, a link, or a directive of the go command.
func unbreakable(s *source, text string) bool {
	switch trimmed := strings.TrimSpace(text); {
	case strings.Contains(text, "://"):
		return true
	case strings.HasPrefix(trimmed, "|"):
		return path.Ext(s.path) == ".md"
	case strings.HasPrefix(trimmed, "//go:"):
		return s.isGo()
	}
	return false
}

// The words are put together here so that this file passes its own rule.
var marks = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)

// checkMarks refuses marks of unfinished work: what is not done is described
// under the limits in the documentation, where a user sees it.
func checkMarks(s *source, report report) {
	for i, text := range s.lines() {
		if m := marks.FindString(text); m != "" {
			report(i+1, "%s left in the tree", m)
		}
	}
}

var paths = regexp.MustCompile(`(^|[^\w./-])/(work|home|root)(/|\b)`)

// checkPaths refuses paths of the machine that a file was written on.
func checkPaths(s *source, report report) {
	for i, text := range s.lines() {
		if m := paths.FindString(text); m != "" {
			report(i+1, "path of one machine: %q", m)
		}
	}
}

// given matches file capabilities as setcap(8) takes them.
var given = regexp.MustCompile(`\bcap_[a-z_]+[+=][eip]+`)

// givenWithin is how many lines before the capabilities say who is to have them.
const givenWithin = 3

// checkCapabilities refuses advice to give capabilities to a program that anybody may
// run: what says setcap says before which group has the program, and that others have
// not.
func checkCapabilities(s *source, report report) {
	lines := s.lines()
	for i, text := range lines {
		if !given.MatchString(text) {
			continue
		}
		near := strings.Join(lines[max(0, i-givenWithin):i+1], "\n")
		if !strings.Contains(near, "chgrp") || !strings.Contains(near, "0750") {
			report(i+1, "capabilities for every local user: chgrp and chmod 0750 come first")
		}
	}
}
