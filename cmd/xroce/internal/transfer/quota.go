package transfer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// A gain is what there is more room for, or less where it is negative.
type gain struct {
	files       int
	total, free int64 // bytes
}

func (g gain) plus(o gain) gain {
	return gain{g.files + o.files, g.total + o.total, g.free + o.free}
}

func (g gain) minus(o gain) gain { return g.plus(gain{-o.files, -o.total, -o.free}) }

// at is what there is more room for on one device of what is on another.
func (g gain) at(here, there uint64) gain {
	if here != there {
		g.free = 0
	}
	return g
}

// perDevice are bytes on each device that a store has files on: what fills one leaves the others as
// they are. Subvolumes that share their space count as devices of their own; who fills them up is
// told when it has happened.
type perDevice map[uint64]int64

// add counts more bytes on a device, or less.
func (b *perDevice) add(dev uint64, n int64) {
	if *b == nil {
		*b = perDevice{}
	}
	if (*b)[dev] += n; (*b)[dev] == 0 {
		delete(*b, dev)
	}
}

// A want is room that is asked for in a directory.
type want struct {
	dir   *os.File
	dev   uint64 // of dir
	files int
	size  int64
	held  int64    // of size, what is there already
	has   *holding // which it becomes part of, nil for a directory

	free    int64 // bytes of the file system, when it was looked last
	unknown error // that kept from looking
	written int64 // Store.written of the device before that
}

// costs is what there is less room for when a want has what it asks for.
func (w *want) costs() gain { return gain{w.files, w.size, w.size - w.held} }

// A holding is room that is set aside for a file that is coming: what others get when it does not
// come.
type holding struct {
	gain
	dev   uint64
	guest *Guest // whose it is, nil for one that never gives way
}

// promise sets room aside, or says why it cannot be had. What is kept of other files makes room,
// and so do guests that are slow: these are waited for, until the context ends.
func (s *Store) promise(ctx context.Context, w *want) error {
	s.look(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.findRoom(ctx, w); err != nil {
		return err
	}
	s.files += w.files
	s.total += w.size
	s.missing.add(w.dev, w.size-w.held)
	if w.has != nil {
		// What is written of a file makes room, too, when it does not come.
		w.has.files, w.has.total = w.has.files+w.files, w.has.total+w.size
		w.has.free = w.has.total
		s.hold(w.has)
	}
	return nil
}

// extend sets more bytes aside for a file whose size was not known.
func (s *Store) extend(ctx context.Context, w *want, had int64) error {
	if had > s.MaxFile-w.size {
		return s.errFile(had + w.size)
	}
	return s.promise(ctx, w)
}

// makeRoom drops what is kept of other files until there is room for a want, behind those that
// came before it. Nothing is dropped for what there is no room for anyway: who asks for it would
// so destroy what others go on with. The caller holds mu, which is let go meanwhile.
func (s *Store) makeRoom(w *want) error {
	for {
		ahead := s.ahead(w)
		err := s.fits(w, gain{}.minus(ahead))
		if err == nil || s.fits(w, s.reclaimable(w.dev).minus(ahead)) != nil {
			return err
		}
		i := s.givesWay(func(r *remnant) bool { return helps(err, r.space(w.dev)) })
		if i < 0 { // what there is to gain is being removed
			return err
		}
		gone := s.drop(i)
		s.mu.Unlock()
		s.remove(gone)
		s.look(w)
		s.mu.Lock()
	}
}

// look looks how much is free for a want. That takes as long as the file system likes, and nobody
// else waits for it: the caller does not hold mu.
func (s *Store) look(w *want) {
	s.mu.Lock()
	w.written = s.written[w.dev]
	s.mu.Unlock()
	w.free, w.unknown = s.free(w.dir)
}

// reclaimable is what dropping all that is kept gives back; of space, what a device gets, also of
// what is being removed. The caller holds mu.
func (s *Store) reclaimable(dev uint64) (g gain) {
	for _, r := range s.kept {
		g = g.plus(gain{1, r.size, r.space(dev)})
	}
	for _, r := range s.going {
		g.free += r.space(dev)
	}
	return g
}

// space is what dropping something that is kept gives back to a device, in bytes.
func (r *remnant) space(dev uint64) int64 {
	if r.dev != dev {
		return 0
	}
	return r.takes
}

// noDevice is that of a directory which cannot be looked at.
const noDevice = math.MaxUint64

// deviceOf is the device that a directory is on.
func deviceOf(dir *os.File) uint64 {
	var st unix.Stat_t
	if unix.Fstat(int(dir.Fd()), &st) != nil {
		return noDevice
	}
	return uint64(st.Dev)
}

// statBlock is the unit of st_blocks in bytes.
const statBlock = 512

// errFile refuses a file that is too large.
func (s *Store) errFile(size int64) error {
	err := fmt.Errorf("%d bytes, and a file has at most %d here (serve --max-file)", size,
		s.MaxFile)
	return &shortage{err, err.Error()}
}

// A shortage says that there is no room. How much there is, is for who may have it all to know:
// a stranger would ask for just that. It lasts: what passes is an ErrBusy.
type shortage struct {
	error
	brief string // without how much there is
}

func (e *shortage) Unwrap() error { return e.error }

// fits reports whether there is room for a want, if so much more were to be had.
func (s *Store) fits(w *want, more gain) error {
	if w.unknown != nil {
		return w.unknown
	}
	// What was written since it was looked may have been free then, or not: it counts as if.
	free := min(w.free, math.MaxInt64-max(0, more.free)) + more.free - s.missing[w.dev] -
		(s.written[w.dev] - w.written)
	total, taken := s.total-more.total, s.files-more.files
	short := func(err error, format string, args ...any) error {
		return &shortage{err, fmt.Sprintf(format, args...)}
	}
	size, toCome := w.size, w.size-w.held
	switch {
	case size > s.MaxFile:
		return s.errFile(size)
	case s.MaxTotal > 0 && size > s.MaxTotal-total:
		return short(fmt.Errorf("%d bytes, and %d more are taken (serve --max-total)", size,
			max(0, s.MaxTotal-total)), "%d bytes are more than are taken (serve --max-total)", size)
	case s.MaxFiles > 0 && w.files > s.MaxFiles-taken:
		return short(fmt.Errorf("%d files were taken, and no more are (serve --max-files)", taken),
			"no more files are taken (serve --max-files)")
	case toCome > free:
		return short(fmt.Errorf("%w: %d bytes, and %d are free for it", unix.ENOSPC, toCome,
			max(0, free)), "%v for %d bytes", unix.ENOSPC, toCome)
	}
	return nil
}

// helps reports whether getting so many bytes of space back is of use where there is no room
// because of err: fits looks at space last, so there is enough of all else when that is short.
func helps(err error, space int64) bool { return space > 0 || !errors.Is(err, unix.ENOSPC) }

// wrote counts bytes of a promise that are in a file on a device, or not any more where it is
// negative.
func (s *Store) wrote(dev uint64, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing.add(dev, -n)
	s.written.add(dev, max(0, n))
}

// forget takes back a promise of which some bytes were not written. That of a directory has no
// holding, and none.
func (s *Store) forget(h *holding, size, unwritten int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files--
	s.total -= size
	if h != nil {
		s.missing.add(h.dev, -unwritten)
	}
	s.letGo(h)
}

// freeBytes is how much fits into the file system of a directory for who is not root.
// A file system that does not know how large it is has no end.
func freeBytes(dir *os.File) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil {
		return 0, fmt.Errorf("statfs: %w", err)
	}
	return freeOf(&st), nil
}

// freeOf is freeBytes, as the file system has it.
func freeOf(st *unix.Statfs_t) int64 {
	blocks, size := uint64(st.Bavail), blockSize(st)
	if st.Blocks == 0 || size == 0 || blocks > math.MaxInt64/size {
		return math.MaxInt64
	}
	return int64(blocks * size)
}
