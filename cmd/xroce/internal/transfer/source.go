package transfer

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"
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

// openSource opens a file to send. It cannot block, whatever has the name meanwhile, but waits for
// who has lent it.
func openSource(ctx context.Context, name string) (*os.File, fs.FileInfo, error) {
	if err := CheckSource(name); err != nil {
		return nil, nil, err
	}
	fd, err := openLent(ctx, unix.AT_FDCWD, name, 0)
	if err != nil {
		return nil, nil, err
	}
	return regular(os.NewFile(uintptr(fd), name), name)
}

// openSourceAt is openSource for a file of a directory that is no symbolic link.
func openSourceAt(
	ctx context.Context, at *os.File, name string,
) (*os.File, fs.FileInfo, error) {
	fd, err := openLent(ctx, int(at.Fd()), name, unix.O_NOFOLLOW)
	if err != nil {
		return nil, nil, err
	}
	return regular(os.NewFile(uintptr(fd), name), name)
}

// How often to try to open a file that is lent, and how long to wait before it is tried again. The
// kernel takes it away after 45 s (proc_sys_fs(5), lease-break-time), and the other end does not
// wait that long for what we say (patience.exchange): the file is one that failed, and others
// follow.
const (
	lentTries = 50
	lentLook  = 100 * time.Millisecond
)

// openLent opens a file to read without blocking. Of one that another process has lent (fcntl(2),
// F_SETLEASE), as file servers do, the first try has the kernel ask for it back.
func openLent(ctx context.Context, dir int, name string, flags int) (int, error) {
	flags |= unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC
	for tries := 1; ; tries++ {
		fd, err := unix.Openat(dir, name, flags, 0)
		switch {
		case err == nil:
			return fd, nil
		case err == unix.EINTR: // on file systems of the network, and of processes
			tries--
			continue
		case err != unix.EAGAIN:
			return -1, &fs.PathError{Op: "open", Path: name, Err: err}
		case tries == lentTries:
			err := fmt.Errorf("%w: another process has a lease of it (fcntl(2))", err)
			return -1, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		_ = await(ctx, nil, nil, lentLook) // whether or not, it looks again
		if err := context.Cause(ctx); err != nil {
			return -1, err
		}
	}
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
