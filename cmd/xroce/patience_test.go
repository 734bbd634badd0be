package main

import (
	"slices"
	"strings"
	"time"

	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

// patiently does something again until it says that it was good, or it is late and was done eight
// times. It is for what an end that was not scheduled for long makes go another way, not wrong.
func patiently(good func() bool) {
	late := time.Now().Add(timeout.Scaled(20 * time.Second))
	for n := 1; !good(); n++ {
		if n >= 8 && time.Now().After(late) {
			return
		}
	}
}

// gaveUp reports whether a command has lost its peer because that did not answer: on a wire that
// loses nothing, one that was not scheduled for so long.
func gaveUp(commands ...*invocation) bool {
	return slices.ContainsFunc(commands, func(i *invocation) bool {
		return strings.Contains(i.stderr, roce.StatusRetryExcErr.String())
	})
}
