package main

import (
	"context"
	"errors"
	"sync/atomic"

	"xroce/cmd/xroce/internal/transfer"
)

// maxResults is how many results of a server may wait for standard output.
const maxResults = 1024

// An arrival is a file that came, and whom it came from.
type arrival struct {
	from   string
	result transfer.Result
}

// results are what a server has to print. They are printed beside it: a program that takes nothing
// from standard output for a while, as a pager does, holds up no client.
type results struct {
	*app
	waiting chan arrival
	printed chan error   // the first error of printing, when all are printed
	missing atomic.Int64 // that there was no room for
}

func newResults(a *app) *results {
	return &results{app: a, waiting: make(chan arrival, maxResults), printed: make(chan error, 1)}
}

// add has a result printed, and reports whether there is room for it.
func (r *results) add(from string, result transfer.Result) bool {
	select {
	case r.waiting <- arrival{from, result}:
		return true
	default:
		r.missing.Add(1)
		return false
	}
}

// print prints results until there are no more.
func (r *results) print() {
	var first error
	for f := range r.waiting {
		if err := r.printTransfer("received", f.from, f.result); first == nil {
			first = err
		}
	}
	r.printed <- first
}

// errUntaken says that results could not be printed, which is a failure also of a server that was
// told to end.
var errUntaken = exitError{
	exitFailure, errors.New("results are missing: nobody takes them from standard output"),
}

// end waits until all results are printed, when no more are added, and what is last: not for ever
// if the server is to end.
func (r *results) end(ctx context.Context, last func()) error {
	close(r.waiting)
	printed := make(chan error, 1)
	err := r.leave(ctx, func() error {
		printed <- <-r.printed
		last()
		return nil
	})
	if err != nil || r.missing.Load() > 0 {
		return errUntaken
	}
	return <-printed
}
