package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/plain"
	"xroce/cmd/xroce/internal/userfile"
	"xroce/roce"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitUnsupported = 3
	exitInterrupted = 130
)

// A usageError is a mistake in the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usagef makes a usageError.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// An exitError ends the command with a code of its own. Without an error the
// command has already said why.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}
func (e exitError) Unwrap() error { return e.err }

// A failure is an error in JSON.
type failure struct {
	Error string `json:"error"`
	Code  int    `json:"exit_code"`
}

// asksForJSON reports whether errors are to be JSON: also those of a command line that was
// refused before its flags were read.
func (a *app) asksForJSON(args []string) bool {
	return a.json || slices.Contains(args, "--json") || slices.Contains(args, "-j")
}

// printJSONError says for programs what ended the command, in one line on stderr: on
// stdout are results. Text of a peer in it cannot command a terminal.
func (a *app) printJSONError(code int, err error) {
	text := err.Error()
	if code == exitInterrupted {
		text = "interrupted"
	}
	// It has nothing that JSON could not say, and nobody to tell that stderr is closed.
	_ = json.NewEncoder(plain.Writer{W: a.stderr}).Encode(failure{text, code})
}

// remedy adds to an error what the user can do about it.
func remedy(err error) error {
	if errors.Is(err, roce.ErrLargeLost) {
		return fmt.Errorf("%w: 'xroce check IFACE HOST' finds what passes; pingpong and perf "+
			"take it with -m, all others with the MTU of the interface", err)
	}
	const files = "raise the limit (ulimit -n)"
	if (errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)) &&
		!strings.Contains(err.Error(), files) { // those of a link say so already
		return fmt.Errorf("%w: %s", err, files)
	}
	return err
}

// unsupported are the causes that a script may skip on: not a failure of ours,
// but this machine or this user cannot do it. Of a file they are a userfile.Failure.
var unsupported = []error{
	errors.ErrUnsupported, unix.EPERM, unix.EACCES, unix.EAFNOSUPPORT, unix.ENOPROTOOPT,
	unix.ESOCKTNOSUPPORT,
}

// exitCode maps an error to an exit code. ran reports whether the command line
// was accepted and the command began.
func exitCode(ctx context.Context, err error, ran bool) int {
	var usage usageError
	var exit exitError
	var ofFile userfile.Failure
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case !ran, errors.As(err, &usage):
		return exitUsage
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &ofFile):
		return exitFailure
	}
	for _, cause := range unsupported {
		if errors.Is(err, cause) {
			return exitUnsupported
		}
	}
	return exitFailure
}
