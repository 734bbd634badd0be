package plain

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxText is the longest Brief, in bytes.
const maxText = 2 << 10

// Text is what a peer said, on one line: what cannot be printed (strconv.IsPrint) is
// spelled as in a Go string, as \n and \x1b.
func Text(s string) string { return escape(s, "") }

// Brief is Text of at most 2 KiB, and how long it was if it was longer.
func Brief(s string) string {
	cut := ""
	if len(s) > maxText {
		s, cut = strings.ToValidUTF8(s[:maxText], ""), fmt.Sprintf("... (%d bytes)", len(s))
	}
	return Text(s) + cut
}

// Lines is Text for what we put together ourselves: line feeds and tabs stay.
func Lines(s string) string { return escape(s, "\n\t") }

// escape spells out what cannot be printed, but for the characters to keep.
func escape(s, keep string) string {
	if !strings.ContainsFunc(s, unprintable) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, string(utf8.RuneError)) {
		if unprintable(r) && !strings.ContainsRune(keep, r) {
			b.WriteString(spell(r))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unprintable reports whether a character is none that only leaves a mark.
func unprintable(r rune) bool { return !strconv.IsPrint(r) }

// spell is a character as in a Go string.
func spell(r rune) string {
	quoted := strconv.QuoteRuneToASCII(r)
	return quoted[1 : len(quoted)-1]
}
