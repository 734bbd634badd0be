package main

import (
	"time"

	"xroce/xsk/xsktest/timeout"
)

// patiently does something again until it says that it was good, or it is late. It is for what an
// end that was not scheduled for long makes go another way, and not wrong.
func patiently(good func() bool) {
	late := time.Now().Add(timeout.Scaled(20 * time.Second))
	for !good() {
		if time.Now().After(late) {
			return
		}
	}
}
