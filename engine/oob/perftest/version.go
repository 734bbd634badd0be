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

// put writes the message.
func (v Version) put(b *[versionLen]byte) error {
	if len(v) >= versionLen {
		return fmt.Errorf("%w: version %q is longer than %d characters", ErrMessage, string(v),
			versionLen-1)
	}
	clear(b[copy(b[:], v):])
	return nil
}

// parseVersion reads the message.
func parseVersion(b *[versionLen]byte) (Version, error) {
	text, _, ok := bytes.Cut(b[:], []byte{0})
	if !ok || len(text) == 0 {
		return "", fmt.Errorf("%w: %q is no version", ErrMessage, b[:])
	}
	v := Version(text)
	// It is shown to people: nothing in it may command a terminal.
	printable := func(c byte) bool { return ' ' < c && c <= '~' }
	if n, ok := v.number(); !ok || n <= 0 || slices.ContainsFunc(text, func(c byte) bool {
		return !printable(c)
	}) {
		return "", fmt.Errorf("%w: %q is no version", ErrMessage, text)
	}
	return v, nil
}
