package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// ErrPath says that a path does not lie below the receiver's directory, or names what a
// peer may not.
var ErrPath = errors.New("path is not below the directory that is served")

// DefaultMode are the permission bits that a file may get when StoreConfig says nothing.
const DefaultMode fs.FileMode = 0o644

// The longest path and name that a peer may name, in bytes: PATH_MAX and NAME_MAX. Of
// one that is refused, an error shows the beginning.
const (
	maxPath = 4096
	maxName = 255
)

// StoreConfig says what peers may do. The zero value lets them do least.
type StoreConfig struct {
	Overwrite bool        // replace a regular file
	Dotfiles  bool        // name what begins with a dot
	Read      bool        // have files sent
	Mode      fs.FileMode // the permission bits that a file may get, 0 for DefaultMode
	MaxFile   int64       // bytes of a file, 0 for MaxSize
	MaxTotal  int64       // bytes of all files that are received, 0 for no bound
	MaxFiles  int         // how many files are received, 0 for no bound

	// Keep is how long what there is of a file is kept whose sender was lost, for that to go
	// on; 0 to keep nothing.
	Keep time.Duration
}

// A Store is a directory that files are received into. Nothing outside of it is
// touched, and no symbolic link in it is followed. It is safe for concurrent use.
type Store struct {
	StoreConfig
	dir      *os.File
	fetching bool // it is that of a client

	// For tests: fsync(2), flock(2), fchmod(2), and how many bytes are free for files in a
	// directory.
	sync  func(*os.File) error
	lock  func(*os.File) error
	chmod func(*os.File, fs.FileMode) error
	free  func(*os.File) (int64, error)
	now   func() time.Time
	// And renameat2(2) and link(2), which fail where something has the new name.
	renameNew func(dir int, from, to string) error
	link      func(dir int, from, to string) error
	// How long a file waits for room, and for who writes to what there is of it.
	roomTime, claimTime time.Duration

	naming sync.Mutex // is held to rename where the kernel keeps no file from replacing another

	mu       sync.Mutex // is held for no longer than memory takes
	files    int        // that were received or are being received
	total    int64      // bytes of these
	missing  perDevice  // of these, bytes that are not written yet
	written  perDevice  // bytes that ever were
	kept     []*remnant
	going    []*remnant               // that are being removed
	owners   map[string]*claim        // who writes to partial files that can be found again
	turns    uint64                   // of those who asked for that
	begun    uint64                   // directories that somebody began to make
	making   map[string]chan struct{} // directories that are not on disk yet: closed when they are
	receipts []*receipt               // the oldest first
	coming   []*holding               // files that room is set aside for
	wants    []*want                  // that wait for room, the first first
	freed    chan struct{}            // is closed when there may be room
}

// OpenStore opens a directory. Symbolic links on the way to it are followed: the user
// names it, not a peer.
func OpenStore(dir string, c StoreConfig) (*Store, error) {
	if c.Mode == 0 {
		c.Mode = DefaultMode
	}
	if c.MaxFile == 0 {
		c.MaxFile = MaxSize
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return &Store{
		StoreConfig: c, dir: os.NewFile(uintptr(fd), dir),
		sync: (*os.File).Sync, lock: lock, chmod: (*os.File).Chmod, free: freeBytes,
		now: time.Now, renameNew: renameNew, link: link, roomTime: roomTime, claimTime: claimTime,
		owners: map[string]*claim{}, making: map[string]chan struct{}{}, freed: make(chan struct{}),
	}, nil
}

// Close closes the directory. No file is being received. What is kept of others stays there.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.dir.Close()
	for _, r := range s.kept {
		err = errors.Join(err, r.dir.Close())
	}
	s.kept = nil
	return err
}

// walk opens a directory below the store, component by component.
func (s *Store) walk(path string) (*os.File, error) {
	at, err := openDir(s.dir, ".")
	if err != nil || path == "." {
		return at, err
	}
	for name := range strings.SplitSeq(path, "/") {
		next, err := openDir(at, name)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// openDir opens a directory in a directory, and no symbolic link.
func openDir(at *os.File, name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(at.Fd()), name, flags, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(at.Name(), name)), nil
}

// A place is where a file shall be.
type place struct {
	dir  *os.File
	base string
	path string // below the store, for people
}

// find finds the place that a peer names. A path that is empty, ends with a slash or a
// dot behind one, or names a directory stands for name in it.
func (s *Store) find(path, name string) (place, error) {
	if path == "" {
		path = "."
	}
	slash := strings.HasSuffix(path, "/") || strings.HasSuffix(path, "/.")
	if !filepath.IsLocal(path) || len(path) > maxPath || !isName(name) {
		return place{}, fmt.Errorf("%w: %.100q, %.100q", ErrPath, path, name)
	}
	path = filepath.Clean(path)
	if err := s.allowed(path); err != nil {
		return place{}, err
	}
	dir, err := s.walk(path)
	if err == nil || slash {
		path = filepath.Join(path, name)
		if err := s.allowed(path); err != nil {
			return place{}, errors.Join(err, closed(dir))
		}
	} else {
		dir, err = s.walk(filepath.Dir(path))
	}
	if err == unix.ENOTDIR || err == unix.ELOOP {
		err = fmt.Errorf("%w, or a symbolic link, which is not followed", err)
	}
	if err != nil {
		return place{}, fmt.Errorf("create %s: %w", path, err)
	}
	return place{dir, filepath.Base(path), path}, nil
}

// isName reports whether a name can be that of a file.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= maxName &&
		!strings.ContainsRune(name, '/')
}

// allowed judges the names on a path.
func (s *Store) allowed(path string) error {
	if path == "." {
		return nil
	}
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case strings.ContainsFunc(name, unicode.IsControl):
			return fmt.Errorf("%w: %.100q has control characters", ErrPath, path)
		case isPart(name):
			return fmt.Errorf("%w: %.100q is a name of files that are not whole", ErrPath, path)
		case strings.HasPrefix(name, ".") && !s.Dotfiles:
			return fmt.Errorf("%w: %.100q has a name that begins with a dot (serve --dotfiles "+
				"allows it)", ErrPath, path)
		}
	}
	return nil
}

// errExists is the refusal to replace a file. It names the flag of who may allow that.
func (s *Store) errExists(path string) error {
	who := "serve"
	if s.fetching {
		who = "copy"
	}
	return fmt.Errorf("%s: %w (%s --overwrite replaces files)", path, fs.ErrExist, who)
}

// vacant refuses a place where something is that may not be replaced.
func (s *Store) vacant(p place) error {
	var st unix.Stat_t
	err := unix.Fstatat(int(p.dir.Fd()), p.base, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == unix.ENOENT:
		return nil
	case err != nil:
		return fmt.Errorf("create %s: %w", p.path, err)
	case !s.Overwrite:
		return s.errExists(p.path)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%s: %w, and is no regular file", p.path, fs.ErrExist)
	}
	return nil
}
