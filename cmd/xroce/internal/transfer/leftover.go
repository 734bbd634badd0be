package transfer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Clear removes the partial files that servers left when they were killed, in all
// directories of the store, and returns how many. Those that were written to less than
// StoreConfig.Keep ago stay for their senders to go on, as many as are kept, and count as what
// was kept since; those of a living server are locked and stay; so does whatever has another
// name, another owner or is no regular file. The error is the first of a directory that could not
// be read, or that of the context, which ends it: others were cleared all the same.
func (s *Store) Clear(ctx context.Context) (removed int, err error) {
	// below counts a slash with each name, and a path has one less
	return s.clear(ctx, maxPath+1)
}

// clear is Clear, of directories with as many bytes of path.
func (s *Store) clear(ctx context.Context, bytes int) (removed int, err error) {
	at, err := openDir(s.dir, ".")
	if err != nil {
		return 0, err
	}
	c := clearing{before: s.oldest()}
	c.clear(ctx, at, bytes)
	s.adopt(c.kept)
	return c.removed, cmp.Or(ctx.Err(), c.err)
}

// adopt keeps what an earlier server has kept.
func (s *Store) adopt(kept []*remnant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range kept {
		s.files++
		s.total += r.size
	}
	s.kept = append(kept, s.kept...)
}

// listed is how many names are read from a directory at a time.
const listed = 128

// A clearing is what came of clearing directories.
type clearing struct {
	before  unix.Timespec // what was written to later stays
	kept    []*remnant    // that, the oldest first
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
			case !e.Type().IsRegular() || !isPart(e.Name()):
			case clearPart(dir, e.Name(), c.before):
				c.removed++
			default:
				c.keep(dir, e.Name())
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

// keep takes note of a partial file that stays, if it is ours and nobody has it, and removes the
// oldest of those that are too many.
func (c *clearing) keep(dir *os.File, name string) {
	r, err := leftover(dir, name)
	if err != nil || r == nil {
		c.err = cmp.Or(c.err, err)
		return
	}
	i, _ := slices.BinarySearchFunc(c.kept, r, func(a, b *remnant) int {
		return a.since.Compare(b.since)
	})
	c.kept = slices.Insert(c.kept, i, r)
	if len(c.kept) > maxKept {
		if oldest := c.kept[0]; clearPart(oldest.dir, oldest.name, always) {
			c.removed++
		}
		c.kept[0].dir.Close()
		c.kept = slices.Delete(c.kept, 0, 1)
	}
}

// leftover is a partial file of ours that nobody has, nil for any other.
func leftover(dir *os.File, name string) (*remnant, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(int(dir.Fd()), name, flags, 0)
	if err != nil {
		return nil, nil // it is not ours, or gone
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG ||
		int(st.Uid) != os.Geteuid() || lock(file) != nil {
		return nil, nil
	}
	at, err := openDir(dir, ".")
	if err != nil {
		return nil, err
	}
	r := &remnant{name: name, dir: at, size: st.Size, since: time.Unix(st.Mtim.Unix())}
	return r.measured(), nil
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
