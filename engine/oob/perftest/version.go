package perftest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// versionLen is the length of the message: text and NULs.
const versionLen = 16

// OurVersion is what we say we are. Newer tools ask peers that claim 6.28 or later
// for more than this package knows.
const OurVersion Version = "6.06"

// oldestVersion is the oldest that the tools of today talk to.
const oldestVersion = 5.70

// A Version is that of the exchange, as `ib_send_bw --version` prints it: two
// numbers and a dot, at most 15 characters.
type Version string

// number is the version as the tools compare it: a decimal fraction, whatever
// stands behind it.
func (v Version) number() (float64, bool) {
	text := string(v)
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end >= 0 {
		text = text[:end]
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// printable reports whether text is of printable ASCII characters: it is shown to people.
func printable(text []byte) bool {
	return !bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// planMark is at the end of the message of who knows Plan, behind the version and its
// NUL, where the tools have NULs and do not look.
const planMark = "xroce-1"

// put writes the message, with the mark of Plan or without.
func (v Version) put(b *[versionLen]byte, plans bool) error {
	most := versionLen - 1
	if plans {
		most -= len(planMark)
	}
	if len(v) > most {
		return fmt.Errorf("%w: version %q is longer than %d characters", ErrMessage, string(v),
			most)
	}
	clear(b[copy(b[:], v):])
	if plans {
		copy(b[versionLen-len(planMark):], planMark)
	}
	return nil
}

// IsVersion reports whether a message is one with which a client begins, of whatever version.
func IsVersion(message []byte) bool {
	if len(message) != versionLen {
		return false
	}
	_, _, err := parseVersion((*[versionLen]byte)(message))
	return err == nil
}

// parseVersion reads the message and reports whether its sender knows Plan.
func parseVersion(b *[versionLen]byte) (v Version, plans bool, err error) {
	text, rest, ok := bytes.Cut(b[:], []byte{0})
	if !ok || len(text) == 0 || !printable(text) {
		return "", false, fmt.Errorf("%w: %q is no version", ErrMessage, b[:])
	}
	v = Version(text)
	// It is shown to people: nothing in it may command a terminal.
	printable := func(c byte) bool { return ' ' < c && c <= '~' }
	if n, ok := v.number(); !ok || n <= 0 || slices.ContainsFunc(text, func(c byte) bool {
		return !printable(c)
	}) {
		return "", false, fmt.Errorf("%w: %q is no version", ErrMessage, text)
	}
	return v, bytes.HasSuffix(rest, []byte(planMark)), nil
}
