package transfer

import (
	"cmp"
	"context"
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
	open      bool  // the size is not known, and is that of what has come
	held      int64 // bytes that are there from before
	unwritten int64
	lasting   string // the name by which its sender finds it again, "" for none
	known     bool   // it has its final name from before, and nothing is written to it
	release   func() // of that name, nil for none
	from      Sender
	ctx       context.Context // of the connection that it comes by
	broken    error           // the first of writing it: what there is of it may be gone
	room      *holding
	mode      fs.FileMode // that was asked for of the file when it is whole
	settled   fs.FileMode // what the kernel leaves of it
	ledger
}

// UnknownSize is that of a file which ends when it ends.
const UnknownSize = -1

// create opens a temporary file for what shall become path, with room for it promised. It may
// have a part of it: see held.
func (s *Store) create(ctx context.Context, o *message, from Sender) (_ *partial, err error) {
	if o.Size < UnknownSize || o.Size > MaxSize {
		return nil, fmt.Errorf("a file of %d bytes, which is not in 0..%d", o.Size, int64(MaxSize))
	}
	at, err := s.find(o.Path, o.Name)
	if err != nil {
		return nil, err
	}
	p := &partial{
		place: at, store: s, size: max(0, o.Size), open: o.Size == UnknownSize, from: from,
		ctx: ctx, room: &holding{dev: deviceOf(at.dir), guest: from.Guest},
	}
	defer func() {
		if err != nil {
			p.abandon(err)
		}
	}()
	// Its owner can always read it: we know it again by that (recognize).
	p.mode = s.Mode&fs.FileMode(o.Mode).Perm() | 0o400
	if s.Keep > 0 && !p.open {
		p.lasting = partialName(from, o, at.path, p.mode)
		if p.release, err = s.claim(ctx, p.lasting, from); err != nil {
			return nil, fmt.Errorf("create %s: %w", at.path, err)
		}
	}
	// Not before it was claimed: another connection may just have given it its name. What is
	// there already is not sent again where it may be replaced, either.
	if !p.recognize() {
		if err := s.vacant(at); err != nil {
			return nil, err
		}
		if err := p.begin(); err != nil {
			return nil, err
		}
	}
	p.ledger = newLedger(p.file)
	return p, nil
}

// begin has room promised, and goes on with what there is of the file from before, or makes it.
func (p *partial) begin() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("create %s: %w", p.path, err)
		}
	}()
	if name := p.lasting; name != "" {
		before := p.store.resume(name, p.room)
		p.file, err = p.reopen(name)
		switch {
		case err == nil:
			p.temp = name
		case err == unix.EACCES: // its mode keeps us from going on
			clearPart(p.dir, name, always)
		case before != nil && mayOpenLater(err):
			p.store.putBack(before, p.room)
			before = nil
		}
		if before != nil {
			before.dir.Close()
		}
	}
	if err := p.store.promise(p.ctx, p.want(1, p.size)); err != nil {
		return err
	}
	p.unwritten = p.size - p.held
	err = p.store.withRoom(p.room.dev, p.establish)
	if err != nil {
		p.store.forget(p.room, p.size, p.unwritten)
	}
	return err
}

// establish makes the file, if there is nothing of it from before, and what it will need beside it.
func (p *partial) establish() (err error) {
	// When the file is whole is not the time to find out that there are no inodes for that.
	if p.settled, err = p.allowed(); err != nil {
		return fmt.Errorf("find its mode: %w", err)
	}
	if p.file == nil {
		err = p.make(p.lasting)
	}
	return err
}

// want is room for the file, or for more of it.
func (p *partial) want(files int, size int64) *want {
	return &want{dir: p.dir, dev: p.room.dev, files: files, size: size, held: p.held, has: p.room}
}

// abandon gives back what a file has that did not come about because of err. What there is of it
// from before makes room when it does not fit any more; after anything else, its sender goes on
// with it when it asks again.
func (p *partial) abandon(err error) {
	stays := false
	if p.file != nil {
		var short *shortage
		p.file.Close()
		if stays = !errors.As(err, &short) && p.store.keepAgain(p); !stays {
			_ = unix.Unlinkat(int(p.dir.Fd()), p.temp, 0)
		}
	}
	p.store.abandoned(p.room)
	p.yield()
	if !stays {
		p.dir.Close()
	}
}

// tries is how often a temporary file is made: who clears the directory may take one
// for left over before it is locked.
const tries = 8

// partMode is that of a file that is not whole. We can go on with it when we are not root, and
// nobody else can open it: who can, may lock it, and it would stay for ever.
const partMode = 0o600

// make makes the temporary file under the name that was asked for, if that is to be had.
func (p *partial) make(wanted string) error {
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	for range tries {
		name := wanted
		if wanted == "" {
			name = partPrefix + rand.Text() + partSuffix
		}
		wanted = ""
		fd, err := unix.Openat(int(p.dir.Fd()), name, flags, partMode)
		if err == unix.EEXIST { // somebody else has the name, and keeps it
			continue
		}
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
		// The name was made for this file, so nobody else's is removed.
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
	more := int64(len(chunk))
	if more == 0 { // which nothing is to be done for, and a known file is not open to write
		return nil
	}
	if p.open {
		if err := p.store.extend(p.ctx, p.want(0, more), p.size); err != nil {
			return p.fault("write", err)
		}
		p.size += more
		p.unwritten += more
	}
	if more > p.unwritten {
		return fmt.Errorf("%w: it sent more than the %d bytes of %s", ErrPeer, p.size, p.path)
	}
	n, err := p.ledger.add(chunk)
	p.unwritten -= int64(n)
	p.store.wrote(p.room.dev, int64(n))
	return p.breaks(p.fault("write", err))
}

// sync writes what there is of the file to disk.
func (p *partial) sync() error { return p.breaks(p.fault("sync", p.store.sync(p.file))) }

// breaks takes note of an error of writing the file, and returns it. The kernel tells once of what
// it could not bring to disk, and fsync(2) succeeds after that: nobody may rely on what there is.
func (p *partial) breaks(err error) error {
	p.broken = cmp.Or(p.broken, err)
	return err
}

// done is the number of bytes that are in the file.
func (p *partial) done() int64 { return p.size - p.unwritten }

// has implements sink.
func (p *partial) has() int64 { return p.done() }

// recall counts what is there from before in the digest, for who is at the other end.
func (p *partial) recall(ctx context.Context, c *control) error {
	err := c.digestOf(ctx, p.file, p.held, p.hash)
	return p.fault("read what there is of", err)
}

// restart drops what is there from before. A file that has its name stays, until another one may
// replace it.
func (p *partial) restart() error {
	if p.known {
		if err := p.instead(); err != nil {
			return err
		}
	}
	if err := p.file.Truncate(0); err != nil {
		return p.fault("truncate", err)
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return p.fault("seek", err)
	}
	p.hash.Reset()
	p.store.wrote(p.room.dev, -p.held)
	p.unwritten, p.held = p.size, 0
	return nil
}

// commit gives the file its name, on disk. From then on its sender may ask again whether it has it.
func (p *partial) commit() error {
	if p.known {
		return nil
	}
	if err := p.settle(); err != nil {
		return err
	}
	if err := p.sync(); err != nil {
		return err
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
	p.store.remember(p)
	return nil
}

// settle gives a file that is whole the mode that it would have had from the beginning. There are
// file systems that give all files the same, as vfat, or whose servers do not know how.
func (p *partial) settle() error {
	err := p.store.chmod(p.file, p.settled)
	for _, never := range []error{unix.EPERM, unix.ENOTSUP, unix.ENOSYS} {
		if errors.Is(err, never) {
			return nil
		}
	}
	return p.fault("set the mode of", err)
}

// allowed is what the kernel leaves of the mode that was asked for, which the umask says, or in its
// place the default ACL of the directory (acl(5)): that of another file which is made there for it.
func (p *partial) allowed() (fs.FileMode, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	name := partPrefix + rand.Text() + partSuffix
	fd, err := unix.Openat(int(p.dir.Fd()), name, flags, uint32(p.mode))
	if err != nil {
		return 0, err
	}
	var st unix.Stat_t
	removeErr := unix.Unlinkat(int(p.dir.Fd()), name, 0)
	if removeErr == unix.ENOENT { // by who clears: nobody has locked it
		removeErr = nil
	}
	err = errors.Join(unix.Fstat(fd, &st), unix.Close(fd), removeErr)
	return fs.FileMode(st.Mode).Perm(), err
}

// close closes the file, and removes it if it was not committed. It is for every
// partial.
func (p *partial) close() (err error) {
	if p.temp != "" {
		err = p.fault("remove what there is of", unix.Unlinkat(int(p.dir.Fd()), p.temp, 0))
		p.store.forget(p.room, p.size, p.unwritten)
	}
	err = errors.Join(err, p.fault("close", p.file.Close()), closed(p.dir))
	p.store.abandoned(p.room)
	p.yield()
	return err
}

// leave closes the file for its sender to go on later, when there is a part that it would find
// again, and that is on disk; otherwise it is close.
func (p *partial) leave() error {
	if p.temp == "" || p.temp != p.lasting || p.done() == 0 {
		return p.close()
	}
	if p.broken == nil {
		_ = p.sync() // breaks remembers the error
	}
	if p.broken != nil {
		return errors.Join(p.broken, p.close())
	}
	_ = p.store.chmod(p.file, partMode) // commit may have come as far as to settle it
	err := p.fault("close", p.file.Close())
	p.store.keep(p)
	p.yield()
	return err
}

// yield lets others have the name.
func (p *partial) yield() {
	if p.release != nil {
		p.release()
	}
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
	if err = bare(err); err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, p.path, err)
}

// bare is an error without the path that it is about: where the directory is, is not for peers.
func bare(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
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
