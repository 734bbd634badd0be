package transfer

import (
	"fmt"
	"io/fs"
	"os"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// CheckSource says why a file cannot be sent, without opening it: what is no regular
// file may block who opens it, as a FIFO does, or do something, as a tape does.
func CheckSource(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{
			Op: "send", Path: name, Err: fmt.Errorf("it is no regular file (%s)", info.Mode()),
		}
	}
	return nil
}

// openSource opens a file to send. It cannot block, whatever has the name meanwhile.
func openSource(name string) (*os.File, fs.FileInfo, error) {
	if err := CheckSource(name); err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	return regular(file, name)
}

// openSourceAt opens a file of a directory to send, and no symbolic link.
func openSourceAt(at *os.File, name string) (*os.File, fs.FileInfo, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(int(at.Fd()), name, flags, 0)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return regular(os.NewFile(uintptr(fd), name), name)
}

// regular returns an open file if it is a regular one, and closes any other.
func regular(file *os.File, name string) (*os.File, fs.FileInfo, error) {
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{
			Op: "send", Path: name, Err: fmt.Errorf("it is no regular file (%s)", info.Mode()),
		}
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// A nameError is a name that cannot be sent.
type nameError string

func (n nameError) Error() string {
	return fmt.Sprintf("the name %q is not UTF-8 and cannot be sent: rename the file", string(n))
}

// checkName refuses a name that JSON cannot carry: it would arrive as another one.
func checkName(name string) error {
	if !utf8.ValidString(name) {
		return nameError(name)
	}
	return nil
}
