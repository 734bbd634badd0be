package main

import (
	"errors"
	"io"
	"os"

	"xroce/cmd/xroce/internal/userfile"
)

// A resultFile is written when a command is over. It is opened before anything is measured or a
// peer is met: what ran for an hour should not fail since nothing can be written there. Until there
// is something to write, it keeps what it has. Where none was asked for, there is nothing to do.
type resultFile struct {
	out *userfile.Output // nil where none was asked for, or it is closed
}

// openResult opens the file of a name, or none where that is empty. Who gets one must close it.
func openResult(name string) (resultFile, error) {
	if name == "" {
		return resultFile{}, nil
	}
	out, err := userfile.Open(name)
	return resultFile{out}, err
}

// is reports whether two are one regular file: what is written last would be all there is.
func (f *resultFile) is(other resultFile) bool {
	if f.out == nil || other.out == nil {
		return false
	}
	ours, err := f.out.Stat()
	theirs, failed := other.out.Stat()
	return err == nil && failed == nil && ours.Mode().IsRegular() && os.SameFile(ours, theirs)
}

// fill has the file get its content, and closes it.
func (f *resultFile) fill(write func(io.Writer) error) error {
	out := f.out
	if out == nil {
		return nil
	}
	f.out = nil
	err := out.Begin()
	if err == nil {
		err = write(out)
	}
	return errors.Join(err, userfile.Failed(out.Close()))
}

// close closes a file to which nothing was written.
func (f *resultFile) close() {
	if f.out != nil {
		f.out.Abandon()
	}
}
