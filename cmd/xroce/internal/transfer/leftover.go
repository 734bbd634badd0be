package transfer

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Clear removes the partial files that servers left when they were killed, in all
// directories of the store, and returns how many. Those of a living server are locked
// and stay; so does whatever has another name, another owner or is no regular file.
func (s *Store) Clear() (removed int, err error) {
	at, err := openDir(s.dir, ".")
	if err != nil {
		return 0, err
	}
	return clearDir(at)
}

// listed is how many names are read from a directory at a time.
const listed = 1024

// clearDir clears a directory and those in it, and closes it.
func clearDir(dir *os.File) (removed int, err error) {
	defer dir.Close()
	var below []string
	for {
		entries, err := dir.ReadDir(listed)
		for _, e := range entries {
			switch {
			case e.IsDir():
				below = append(below, e.Name())
			case e.Type().IsRegular() && isPart(e.Name()) && clearPart(dir, e.Name()):
				removed++
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return removed, err
		}
	}
	for _, name := range below {
		next, err := openDir(dir, name)
		if err != nil {
			continue // removed meanwhile, or not for us to read: not for us to write to
		}
		n, err := clearDir(next)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// clearPart removes a partial file that nobody holds and reports whether it did.
func clearPart(dir *os.File, name string) bool {
	const flags = unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(int(dir.Fd()), name, flags, 0)
	if err == unix.EACCES {
		// Its mode keeps us from writing; the lock needs only a descriptor.
		fd, err = unix.Openat(int(dir.Fd()), name, flags&^unix.O_WRONLY, 0)
	}
	if err != nil {
		return false
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG ||
		int(st.Uid) != os.Geteuid() || unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	return named(dir, name, file) && unix.Unlinkat(int(dir.Fd()), name, 0) == nil
}
