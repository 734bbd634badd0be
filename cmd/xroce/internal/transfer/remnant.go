package transfer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine/crowd"
)

// maxKept is how many files a store keeps a part of whose sender was lost.
const maxKept = 16

// A remnant is what is kept of a file whose sender was lost. It counts as a file as long as it
// is there, and makes room for whoever needs some.
type remnant struct {
	name  string
	dir   *os.File
	size  int64 // that was promised
	since time.Time
	from  netip.Prefix // whose it is, zero of one that an earlier server kept
	dev   uint64       // that it is on
	takes int64        // bytes of that
}

// measured is a remnant that knows what of a disk it takes.
func (r *remnant) measured() *remnant {
	var st unix.Stat_t
	if unix.Fstatat(int(r.dir.Fd()), r.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		r.dev, r.takes = uint64(st.Dev), st.Blocks*statBlock
	}
	return r
}

// remove removes what was dropped, if anything, which takes the disk its time: the caller does not
// hold mu.
func (s *Store) remove(gone ...*remnant) {
	for _, r := range gone {
		if r == nil {
			continue
		}
		clearPart(r.dir, r.name, always)
		r.dir.Close()
		s.mu.Lock()
		s.going = slices.DeleteFunc(s.going, func(o *remnant) bool { return o == r })
		s.wake()
		s.mu.Unlock()
	}
}

// A Sender is who sends a file.
type Sender struct {
	Host netip.Prefix // nobody else goes on with what it began
	// GiveUp ends its transfer, because another connection of it goes on with that. It does
	// not wait. It may be nil for one that cannot be ended.
	GiveUp func(error)
	// Guest is its connection in a lobby, whose room others get when it is slow. It may be nil
	// for one that gives no room to others.
	Guest *Guest
}

// ErrAgain says that another connection goes on with the same file.
var ErrAgain = errors.New("another connection sends the same file")

// partialName is the name of what there is of a file: the same whenever the same host sends what
// looks like the same file to the same place, and not to be mistaken for that of another. What was
// begun when files got another mode is not gone on with.
func partialName(from Sender, o *message, path string, mode fs.FileMode) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %q %d %d %o", from.Host, path, o.Size, o.MTime, mode)
	return partPrefix + base32.StdEncoding.EncodeToString(h.Sum(nil))[:26] + partSuffix
}

// A claim is who writes to a partial file.
type claim struct {
	turn   uint64 // the later one asked, the higher
	giveUp func(error)
	over   chan struct{}
}

// claimTime is how long who asks for a partial file waits for another to give it up, which writes
// to disk before that.
const claimTime = 20 * time.Second

// errWriting says that it takes longer.
var errWriting = errors.New("what came of it before is still being written to disk")

// claim makes a partial file that of a sender. One that has it, of a connection that is lost
// and has not noticed, is told to give it up and waited for. Of several that wait the last one is
// the one that is there: the others give way to it.
func (s *Store) claim(ctx context.Context, key string, from Sender) (release func(), err error) {
	s.mu.Lock()
	s.turns++
	c := &claim{s.turns, from.GiveUp, make(chan struct{})}
	s.mu.Unlock()
	for {
		s.mu.Lock()
		before := s.owners[key]
		if before == nil {
			s.owners[key] = c
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.owners, key)
				close(c.over)
			}, nil
		}
		s.mu.Unlock()
		if before.giveUp == nil || before.turn > c.turn {
			return nil, ErrAgain
		}
		before.giveUp(ErrAgain)
		err := await(ctx, before.over, nil, s.claimTime)
		if errors.Is(err, peer.ErrSilence) {
			err = errWriting
		}
		if err != nil {
			return nil, err
		}
	}
}

// keep remembers what there is of a file. The directory is its own from now on.
func (s *Store) keep(p *partial) {
	r := p.remnant()
	s.mu.Lock()
	s.missing.add(p.room.dev, -p.unwritten)
	gone := s.remain(r)
	s.letGo(p.room)
	s.mu.Unlock()
	s.remove(gone)
}

// keepAgain keeps what was kept before of a file that got no room now, and reports whether it did:
// not if others got meanwhile what it counts for. The directory is its own from then on.
func (s *Store) keepAgain(p *partial) bool {
	r := p.remnant()
	s.mu.Lock()
	counts, gone := s.countAgain(r)
	if counts {
		s.letGo(p.room)
	}
	s.mu.Unlock()
	s.remove(gone)
	return counts
}

// countAgain remembers a file that counts no more, if it may, and returns one that others do not
// leave a place for, as remain does. The caller holds mu.
func (s *Store) countAgain(r *remnant) (counts bool, gone *remnant) {
	if s.MaxFiles > 0 && s.files >= s.MaxFiles || s.MaxTotal > 0 && r.size > s.MaxTotal-s.total {
		return false, nil
	}
	s.files++
	s.total += r.size
	return true, s.remain(r)
}

// remnant is what is kept of a file.
func (p *partial) remnant() *remnant {
	r := &remnant{
		name: p.temp, dir: p.dir, size: p.size, since: p.store.now(), from: p.from.Host,
	}
	return r.measured()
}

// remain remembers a file that counts already, and returns one that does not any more when there
// are too many, for the caller to remove when he holds mu no longer.
func (s *Store) remain(r *remnant) (gone *remnant) {
	s.kept = append(s.kept, r)
	if len(s.kept) > maxKept {
		gone = s.drop(s.givesWay(func(*remnant) bool { return true }))
	}
	return gone
}

// resume takes a partial file out of those that are kept, if it is one, and drops those that are
// too old. What is there of it is held from now on. Its directory is the caller's to close.
func (s *Store) resume(name string, has *holding) *remnant {
	s.remove(s.dropOld()...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.kept {
		if r.name == name {
			has.free = r.space(has.dev)
			s.hold(has)
			s.release(i)
			return r
		}
	}
	return nil
}

// dropOld takes those out of what is kept that are too old, for the caller to remove.
func (s *Store) dropOld() (gone []*remnant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.kept) > 0 && s.now().Sub(s.kept[0].since) > s.Keep {
		gone = append(gone, s.drop(0))
	}
	return gone
}

// putBack keeps on what resume took, and nobody holds, unless others got meanwhile what it counts
// for.
func (s *Store) putBack(r *remnant, has *holding) {
	s.mu.Lock()
	r.since = s.now() // as of any that is kept last
	counts, gone := s.countAgain(r)
	if !counts {
		s.going = append(s.going, r)
		gone = r
	}
	has.free = 0
	s.letGo(has)
	s.mu.Unlock()
	s.remove(gone)
}

// mayOpenLater reports whether there was too little of something to open a file that may be the
// one that is kept.
func mayOpenLater(err error) bool {
	switch err {
	case unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOLCK, unix.EINTR, unix.EIO:
		return true
	}
	return false
}

// givesWay is which of those that are kept, and may, makes room: the oldest of the host that has
// most of them, so that who leaves many parts drives out his own; -1 for none. The caller holds mu.
func (s *Store) givesWay(may func(*remnant) bool) int {
	return crowd.GivesWay(s.kept, func(r *remnant) (netip.Prefix, bool) { return r.from, may(r) })
}

// drop takes one out of those that are kept, for the caller to remove when he holds mu no longer:
// the disk takes its time for that.
func (s *Store) drop(i int) *remnant {
	r := s.kept[i]
	s.release(i)
	s.going = append(s.going, r)
	return r
}

// maxDropped is how many of those that are kept are removed for a name or an inode. Each gives back
// an inode and a block at least, so where so many do not help, more do not.
const maxDropped = 2

// withRoom does what takes a name or an inode on a device. Where there is none to be had, though
// bytes are free for it, those that are kept there make room.
func (s *Store) withRoom(dev uint64, do func() error) error {
	for dropped := 0; ; dropped++ {
		err := do()
		full := errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
		if !full || dropped == maxDropped || !s.dropOne(dev) {
			return err
		}
	}
}

// dropOne removes one of those that are kept on a device, and reports whether there was one.
func (s *Store) dropOne(dev uint64) bool {
	s.mu.Lock()
	i := s.givesWay(func(r *remnant) bool { return r.dev == dev })
	if i < 0 {
		s.mu.Unlock()
		return false
	}
	gone := s.drop(i)
	s.mu.Unlock()
	s.remove(gone)
	return true
}

// release gives back what is promised for something that is kept. The caller holds mu.
func (s *Store) release(i int) {
	s.files--
	s.total -= s.kept[i].size
	s.kept = append(s.kept[:i], s.kept[i+1:]...)
}

// reopen opens what there is of a file from before, unless it is not ours alone (EEXIST).
func (p *partial) reopen(name string) (*os.File, error) {
	const flags = unix.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(int(p.dir.Fd()), name, flags, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG ||
		int(st.Uid) != os.Geteuid() || st.Nlink != 1 || st.Size > p.size {
		file.Close()
		return nil, errors.Join(err, unix.EEXIST)
	}
	if err := p.store.lock(file); err != nil || !named(p.dir, name, file) {
		file.Close()
		return nil, cmp.Or(err, error(unix.EEXIST))
	}
	_ = p.store.chmod(file, partMode) // of a server that was killed when it had settled it
	p.held = st.Size
	return file, nil
}
