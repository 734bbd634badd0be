package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// makeDir makes a directory of a store, and those above it, as far as they are missing. Each
// counts as a file.
func (s *Store) makeDir(ctx context.Context, to string) (err error) {
	if !filepath.IsLocal(to) || filepath.Clean(to) != to || len(to) > maxPath ||
		strings.Count(to, "/") >= maxDepth {
		return fmt.Errorf("%w: %.100q", ErrPath, to)
	}
	if err := s.allowed(to); err != nil {
		return err
	}
	at, err := openDir(s.dir, ".")
	if err != nil {
		return err
	}
	defer func() { at.Close() }()
	for name := range strings.SplitSeq(to, "/") {
		next, err := s.madeDir(ctx, at, name)
		if err == unix.ENOTDIR || err == unix.ELOOP {
			err = fmt.Errorf("%w, or a symbolic link, which is not followed", err)
		}
		if err != nil {
			return fmt.Errorf("make directory %s: %w", to, err)
		}
		at.Close()
		at = next
	}
	return nil
}

// madeDir opens a directory in a directory, and makes it if it is missing. One that somebody else
// is making counts when it is on disk: that is waited for until the context ends.
func (s *Store) madeDir(ctx context.Context, at *os.File, name string) (*os.File, error) {
	where := filepath.Join(at.Name(), name)
	for {
		next, others, err := s.openMade(at, name, where)
		switch {
		case others != nil:
			select {
			case <-others:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		case err != unix.ENOENT:
			return next, err
		default:
			if err := s.makeOne(ctx, at, name, where); err != nil {
				return nil, err
			}
		}
	}
}

// openMade opens a directory in a directory, unless others are making it: the channel is closed
// when they have. A disk may take long to find it, which holds up nobody else.
func (s *Store) openMade(
	at *os.File, name, where string,
) (dir *os.File, others chan struct{}, err error) {
	begun, others := s.makingOf(where)
	for others == nil {
		before := begun
		dir, err = openDir(at, name)
		if begun, others = s.makingOf(where); begun == before {
			return dir, nil, err
		}
		_ = closed(dir) // it may be one that is not on disk yet, or was not to be brought there
	}
	return nil, others, nil
}

// makingOf returns how many directories anybody began to make, and who is making one, nil for
// nobody.
func (s *Store) makingOf(where string) (begun uint64, over chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun, s.making[where]
}

// makeOne makes a directory in a directory, on disk, unless others have begun to. To bring it there
// may take long where others write, and holds up nobody who does not want this one.
func (s *Store) makeOne(ctx context.Context, at *os.File, name, where string) error {
	if err := s.promise(ctx, &want{dir: at, dev: deviceOf(at), files: 1}); err != nil {
		return err
	}
	over := make(chan struct{})
	s.mu.Lock()
	begun := s.making[where] != nil
	if !begun {
		s.making[where] = over
		s.begun++
	}
	s.mu.Unlock()
	if begun {
		s.forget(nil, 0, 0)
		return nil
	}
	made := false
	err := s.withRoom(deviceOf(at), func() error {
		one, err := s.bringDir(at, name)
		made = made || one
		return err
	})
	if !made {
		s.forget(nil, 0, 0)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.making, where)
	close(over)
	return err
}

// bringDir makes a directory in a directory and brings it to disk, and reports whether there is one
// more.
func (s *Store) bringDir(at *os.File, name string) (made bool, err error) {
	// Who may read a file may look into its directory.
	mode := s.Mode | s.Mode&0o444>>2 | 0o700
	err = unix.Mkdirat(int(at.Fd()), name, uint32(mode))
	if made = err == nil; !made && err != unix.EEXIST {
		return false, err
	}
	if err := bare(s.sync(at)); err != nil && !errors.Is(err, unix.EINVAL) {
		// Who asks again must not find it, and take it for one that is on disk.
		return made && unix.Unlinkat(int(at.Fd()), name, unix.AT_REMOVEDIR) != nil, err
	}
	return made, nil
}
