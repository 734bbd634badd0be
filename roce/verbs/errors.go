package verbs

import "errors"

// Errors that the application's side returns. They come wrapped with the
// argument and what was expected of it.
var (
	ErrInvalid   = errors.New("roce: invalid argument")
	ErrState     = errors.New("roce: not possible in this state")
	ErrQueueFull = errors.New("roce: work queue is full")
	ErrOverrun   = errors.New("roce: completion queue overran")
	// ErrFailed says that a work request failed. It is in each WorkError.
	ErrFailed = errors.New("work request failed")
	// ErrLargeLost says that the path loses large packets alone: see VendorLargeLost.
	ErrLargeLost = errors.New("large packets alone are lost")
)
