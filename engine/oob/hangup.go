package oob

import (
	"errors"
	"io"
	"syscall"
)

// HungUp reports whether an error of reading or writing says that the peer closed the
// connection. What it had not read when it closed makes a reset of what would have
// been an end of file (tcp(7)), so the two mean the same to us.
func HungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
