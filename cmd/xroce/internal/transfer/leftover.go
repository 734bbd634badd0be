package transfer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// Clear removes the partial files that servers left when they were killed, in all
// directories of the store, and returns how many. Those that were written to less than
// StoreConfig.Keep ago stay for their senders to go on; those of a living server are locked
// and stay; so does whatever has another name, another owner or is no regular file. The
// error is the first of a directory that could not be read, or that of the context, which
// ends it: others were cleared all the same.
func (s *Store) Clear(ctx context.Context) (removed int, err error) {
	at, err := openDir(s.dir, ".")
	if err != nil {
		return 0, err
	}
	c := clearing{before: s.oldest()}
	c.clear(ctx, at, maxPath+1) // below counts a slash with each name, and a path has one less
	return c.removed, cmp.Or(ctx.Err(), c.err)
}

// listed is how many names are read from a directory at a time.
const listed = 128

// A clearing is what came of clearing directories.
type clearing struct {
	before  unix.Timespec // what was written to later stays
	removed int
	err     error // the first one
}

// clear clears a directory and those in it, and closes it. Below it are only as many
// bytes of path as a peer could have named: others may have made directories of any depth.
func (c *clearing) clear(ctx context.Context, dir *os.File, bytes int) {
	defer dir.Close()
	for ctx.Err() == nil {
		entries, err := dir.ReadDir(listed)
		for _, e := range entries {
			switch {
			case ctx.Err() != nil:
			case e.IsDir():
				c.below(ctx, dir, e.Name(), bytes-len(e.Name())-1)
			case e.Type().IsRegular() && isPart(e.Name()) &&
				clearPart(dir, e.Name(), c.before):
				c.removed++
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, fs.ErrNotExist): // removed meanwhile
			return
		default:
			c.err = cmp.Or(c.err, err)
			return
		}
	}
}

// below clears a directory in a directory, if there may be as many bytes below that.
func (c *clearing) below(ctx context.Context, dir *os.File, name string, bytes int) {
	if bytes < 0 {
		return
	}
	next, err := openDir(dir, name)
	switch err {
	case nil:
		c.clear(ctx, next, bytes)
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP: // something else by now
	case unix.EACCES: // not for us to read, and not to write to
	default:
		c.err = cmp.Or(c.err, error(&fs.PathError{Op: "open", Path: name, Err: err}))
	}
}

// always is later than any file was written to.
var always = unix.Timespec{Sec: math.MaxInt64}

// oldest is when a partial file was written to that is just kept.
func (s *Store) oldest() unix.Timespec {
	if s.Keep == 0 {
		return always
	}
	return unix.NsecToTimespec(s.now().Add(-s.Keep).UnixNano())
}

// clearPart removes a partial file that nobody holds and that was written to before a time, and
// reports whether it did.
func clearPart(dir *os.File, name string, before unix.Timespec) bool {
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
		int(st.Uid) != os.Geteuid() || !earlier(st.Mtim, before) || lock(file) != nil {
		return false
	}
	return named(dir, name, file) && unix.Unlinkat(int(dir.Fd()), name, 0) == nil
}

// earlier reports whether a is before b.
func earlier(a, b unix.Timespec) bool {
	return a.Sec < b.Sec || a.Sec == b.Sec && a.Nsec < b.Nsec
}
