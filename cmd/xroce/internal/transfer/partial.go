package transfer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"regexp"

	"golang.org/x/sys/unix"
)

// Names of files that are not whole: of a length of their own, so that a name of 255
// bytes has one, too.
const (
	partPrefix = ".xroce-"
	partSuffix = ".part"
)

var partName = regexp.MustCompile(`^\.xroce-[A-Z2-7]{26}\.part$`)

// isPart reports whether a name has the form of those of partial files.
func isPart(name string) bool { return partName.MatchString(name) }

// A partial is a file that is being received: under a temporary name beside its final
// one until it is complete. It is locked (flock(2)) as long as its process lives.
type partial struct {
	place
	store     *Store
	file      *os.File
	temp      string // "" when there is nothing to remove
	size      int64
	unwritten int64
	ledger
}

// create opens a temporary file for what shall become path, with room for it promised.
func (s *Store) create(o *message) (_ *partial, err error) {
	if o.Size < 0 || o.Size > MaxSize {
		return nil, fmt.Errorf("a file of %d bytes, which is not in 0..%d", o.Size, int64(MaxSize))
	}
	at, err := s.find(o.Path, o.Name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			at.dir.Close()
		}
	}()
	if err := s.vacant(at); err != nil {
		return nil, err
	}
	if err := s.promise(at.dir, o.Size); err != nil {
		return nil, fmt.Errorf("create %s: %w", at.path, err)
	}
	p := &partial{place: at, store: s, size: o.Size, unwritten: o.Size}
	// Its owner can always read it: else nobody could clear it when we are killed.
	if err := p.open(s.Mode&fs.FileMode(o.Mode).Perm() | 0o400); err != nil {
		s.forget(o.Size, o.Size)
		return nil, fmt.Errorf("create %s: %w", at.path, err)
	}
	p.ledger = newLedger(p.file)
	return p, nil
}

// tries is how often a temporary file is made: who clears the directory may take one
// for left over before it is locked, and whoever can read it may lock it.
const tries = 8

// open makes the temporary file with the mode that it is to have, less the umask.
func (p *partial) open(mode fs.FileMode) error {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	for range tries {
		name := partPrefix + rand.Text() + partSuffix
		fd, err := unix.Openat(int(p.dir.Fd()), name, flags, uint32(mode))
		if err != nil {
			return err
		}
		file := os.NewFile(uintptr(fd), name)
		err = p.store.lock(file)
		if err == nil && named(p.dir, name, file) {
			p.file, p.temp = file, name
			return nil
		}
		file.Close()
		// The name was drawn for this file, so nobody else's is removed.
		removeErr := unix.Unlinkat(int(p.dir.Fd()), name, 0)
		if removeErr == unix.ENOENT { // by who clears
			removeErr = nil
		}
		if err != nil && err != unix.EWOULDBLOCK || removeErr != nil {
			return fmt.Errorf("flock: %w", errors.Join(err, removeErr))
		}
	}
	return errors.New("the files are removed or locked as soon as they are made")
}

// lock locks a file that nobody has locked.
func lock(file *os.File) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// named reports whether a name in a directory is that of an open file.
func named(dir *os.File, name string, file *os.File) bool {
	var here, there unix.Stat_t
	if unix.Fstat(int(file.Fd()), &here) != nil ||
		unix.Fstatat(int(dir.Fd()), name, &there, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	return here.Dev == there.Dev && here.Ino == there.Ino
}

// add writes a chunk.
func (p *partial) add(chunk []byte) error {
	n, err := p.ledger.add(chunk)
	p.unwritten -= int64(n)
	p.store.wrote(int64(n))
	return p.fault("write", err)
}

// commit gives the file its name, on disk.
func (p *partial) commit() error {
	if err := p.store.sync(p.file); err != nil {
		return p.fault("sync", err)
	}
	if err := p.rename(); err != nil {
		return err
	}
	p.temp = ""
	// Where a directory has no fsync(2), the kernel says that it is no file for that, and
	// there is nothing to do (fs/sync.c, vfs_fsync_range): vboxsf and AFS, for example.
	if err := p.store.sync(p.dir); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%s has its name, which may be lost when the machine crashes: %w",
			p.path, p.fault("sync the directory of", err))
	}
	return nil
}

// rename gives the file its final name. One that is there stays, unless it may be
// replaced.
func (p *partial) rename() error {
	fd := int(p.dir.Fd())
	if p.store.Overwrite {
		if err := p.store.vacant(p.place); err != nil {
			return err
		}
		return p.fault("rename", unix.Renameat(fd, p.temp, fd, p.base))
	}
	err := renameNew(fd, p.temp, p.base)
	if err == unix.EEXIST {
		return errExists(p.path)
	}
	return p.fault("rename", err)
}

// linkNew is a rename that replaces nothing, on file systems that have hard links.
func linkNew(dir int, from, to string) error {
	if err := unix.Linkat(dir, from, dir, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(dir, from, 0)
}

// close closes the file, and removes it if it was not committed. It is for every
// partial.
func (p *partial) close() (err error) {
	if p.temp != "" {
		err = p.fault("remove what there is of", unix.Unlinkat(int(p.dir.Fd()), p.temp, 0))
		p.store.forget(p.size, p.unwritten)
	}
	return errors.Join(err, p.fault("close", p.file.Close()), closed(p.dir))
}

// closed closes a directory if there is one.
func closed(dir *os.File) error {
	if dir == nil {
		return nil
	}
	return dir.Close()
}

// fault is an error about the final file, without the temporary name. No error stays
// none.
func (p *partial) fault(op string, err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, p.path, err)
}

// A ledger writes what a peer put into memory, and keeps account of what it wrote. The
// peer can change that memory at any time, so both work on a copy of ours.
type ledger struct {
	to   io.Writer
	copy []byte
	hash hash.Hash
}

func newLedger(to io.Writer) ledger {
	return ledger{to: to, copy: make([]byte, ChunkSize), hash: sha256.New()}
}

// add writes a chunk of at most ChunkSize bytes and returns how many were written.
func (l *ledger) add(chunk []byte) (int, error) {
	mine := l.copy[:copy(l.copy, chunk)]
	n, err := l.to.Write(mine)
	l.hash.Write(mine[:n])
	return n, err
}

// sum is the SHA-256 of what was written, in hexadecimal.
func (l *ledger) sum() string { return hex.EncodeToString(l.hash.Sum(nil)) }
