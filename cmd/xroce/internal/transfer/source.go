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
	fd, err := openLent(ctx, lentTime, unix.AT_FDCWD, name, 0)
	if err != nil {
		return nil, nil, err
	}
	return regular(os.NewFile(uintptr(fd), name), name)
}

// openSourceAt opens a file of a directory to send, and no symbolic link. It waits at most so long
// for who has lent it.
func openSourceAt(
	ctx context.Context, most time.Duration, at *os.File, name string,
) (*os.File, fs.FileInfo, error) {
	fd, err := openLent(ctx, most, int(at.Fd()), name, unix.O_NOFOLLOW)
	if err != nil {
		return nil, nil, err
	}
	return regular(os.NewFile(uintptr(fd), name), name)
}

// How long to wait for who has lent a file, at our end and where a client waits for an answer, and
// how often to look. The kernel takes it away after 45 s (proc_sys_fs(5), lease-break-time).
const (
	lentTime  = time.Minute
	lentBrief = 5 * time.Second
	lentLook  = 100 * time.Millisecond
)

// openLent opens a file to read without blocking. Of one that another process has lent (fcntl(2),
// F_SETLEASE), as file servers do, the first try has the kernel ask for it back.
func openLent(
	ctx context.Context, most time.Duration, dir int, name string, flags int,
) (int, error) {
	flags |= unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC
	for end := time.Now().Add(most); ; {
		fd, err := unix.Openat(dir, name, flags, 0)
		switch {
		case err == nil:
			return fd, nil
		case err != unix.EAGAIN:
			return -1, &fs.PathError{Op: "open", Path: name, Err: err}
		case !time.Now().Before(end):
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
