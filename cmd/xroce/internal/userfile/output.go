package userfile

import (
	"errors"
	"io/fs"
	"os"
)

// An Output is a file that is about to be written. What it had before stays in it until Begin, so a
// command that cannot begin takes nothing from anybody: from the user what he kept, nor from
// another process what that writes there.
type Output struct {
	*os.File
	made bool // there was none before
}

// Open opens a file to be written, as os.Create does, or makes one, and does not change what it
// has. Who opens a FIFO does not wait for its reader: like os.Create, this opens for both.
func Open(name string) (*Output, error) {
	const mode = 0o666 // the umask takes from that
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	made := err == nil
	if errors.Is(err, fs.ErrExist) {
		file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, mode)
	}
	if err != nil {
		return nil, Failed(err)
	}
	return &Output{file, made}, nil
}

// Begin takes out what was there before. What is no regular file, as a FIFO, has nothing to take. A
// file that has lost its name since it was opened would be written for nobody: one of that name
// takes its place, once, since there are file systems on which no file is the same as itself.
func (o *Output) Begin() error {
	info, err := o.Stat()
	if err == nil && !named(o.Name(), info) {
		fresh, err := Open(o.Name())
		if err != nil {
			return err
		}
		_ = o.Close() // nothing was written
		*o = *fresh
		if info, err = o.Stat(); err != nil {
			return err
		}
	}
	if err == nil && info.Mode().IsRegular() {
		err = o.Truncate(0)
	}
	return Failed(err)
}

// named reports whether a name leads to a file.
func named(name string, file os.FileInfo) bool {
	there, err := os.Stat(name)
	return err == nil && os.SameFile(there, file)
}

// Abandon closes a file that has not begun. It removes one that Open made, unless something else
// has its name by now or somebody else has begun to write to it.
func (o *Output) Abandon() {
	ours, err := o.Stat()
	_ = o.Close() // nothing was written
	if !o.made || err != nil || ours.Size() > 0 {
		return
	}
	if there, err := os.Lstat(o.Name()); err == nil && os.SameFile(ours, there) {
		_ = os.Remove(o.Name()) // an empty file that stays harms nobody
	}
}
