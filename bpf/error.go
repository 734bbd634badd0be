package bpf

import (
	"errors"
	"fmt"
)

// Errors that are not the kernel's.
var (
	// ErrForeignProgram says that the interface already has an XDP program that
	// is not this Program's. Attach never replaces one. The message has the id
	// and the name of that program and what to do.
	ErrForeignProgram = errors.New("interface has another XDP program")

	// ErrNotSupported says that the operating system has no XDP. It is
	// errors.ErrUnsupported.
	ErrNotSupported = errors.ErrUnsupported

	// ErrClosed is returned by the methods of a closed Program.
	ErrClosed = errors.New("bpf: program is closed")
)

// An Error is an operation that the kernel refused.
type Error struct {
	Op        string // what failed: "load", "attach", "own", "register", ...
	Interface string // interface name, empty when none is concerned
	Err       error  // the cause; errors.Is finds a unix.Errno in it
	Hint      string // what to do about it, or empty
}

// Error returns one line with the operation, the interface, the cause and the
// hint.
func (e *Error) Error() string {
	s := "bpf: " + e.Op
	if e.Interface != "" {
		s += " " + e.Interface
	}
	s = fmt.Sprintf("%s: %v", s, e.Err)
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
