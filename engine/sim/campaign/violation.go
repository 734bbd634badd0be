package campaign

import (
	"fmt"
	"runtime/debug"

	"xroce/roce"
)

// An Invariant is a promise that must hold in every run: its number and its name, as
// "I2 memory".
type Invariant string

// A Violation is an invariant that did not hold.
type Violation struct {
	Invariant Invariant
	At        roce.Time
	What      string
}

// String says what was violated, when, and how.
func (v *Violation) String() string {
	return fmt.Sprintf("%s at %s: %s", v.Invariant, ClockTime(v.At), v.What)
}

// Protect does a run, and returns a panic of it as a violation of an invariant, with the stack.
// It returns nil when there was none.
func Protect(panics Invariant, run func()) (v *Violation) {
	defer func() {
		if p := recover(); p != nil {
			v = &Violation{panics, 0, fmt.Sprintf("%v\n%s", p, debug.Stack())}
		}
	}()
	run()
	return nil
}

// ClockTime prints a virtual time in microseconds.
func ClockTime(t roce.Time) string { return fmt.Sprintf("%.3fus", float64(t)/1000) }
