package userfile

import (
	"errors"
	"io/fs"
)

// A Failure is that a file may not be used which the user named. He can name another one, or let
// himself use it: the command has failed, and it is not this machine that cannot carry it out, nor
// this user on it.
type Failure struct{ err error }

// Failed returns a Failure if an error says that something may not be done, and any other error,
// and nil, as it is. Who calls it knows that the error is of a file.
func Failed(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return Failure{err}
	}
	return err
}

// Error implements error.
func (f Failure) Error() string { return f.err.Error() }

// Unwrap is for errors.Is.
func (f Failure) Unwrap() error { return f.err }
