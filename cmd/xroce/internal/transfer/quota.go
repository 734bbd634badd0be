package transfer

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// promise sets bytes aside for a file in a directory that has some of them already, or says
// why it cannot be had. What is kept of other files makes room.
func (s *Store) promise(dir *os.File, size, held int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.makeRoom(dir, size, held, 1); err != nil {
		return err
	}
	s.files++
	s.total += size
	s.missing += size - held
	return nil
}

// extend sets more bytes aside for a file whose size was not known.
func (s *Store) extend(dir *os.File, more, had int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if had > s.MaxFile-more {
		return s.errFile(had + more)
	}
	if err := s.makeRoom(dir, more, 0, 0); err != nil {
		return err
	}
	s.total += more
	s.missing += more
	return nil
}

// makeRoom drops what is kept of other files until there is room for what fits asks for. Nothing
// is dropped for what there is no room for anyway: who asks for it would so destroy what others
// go on with. The caller holds mu.
func (s *Store) makeRoom(dir *os.File, size, held int64, files int) error {
	err := s.fits(dir, size, held, files, gain{})
	if err == nil || s.fits(dir, size, held, files, s.reclaimable(dir)) != nil {
		return err
	}
	for err != nil && len(s.kept) > 0 {
		s.drop(s.givesWay())
		err = s.fits(dir, size, held, files, gain{})
	}
	return err
}

// A gain is what there is more room for.
type gain struct {
	files       int
	total, free int64 // bytes
}

// reclaimable is what dropping all that is kept gives back; of space, what the file system of a
// directory gets. The caller holds mu.
func (s *Store) reclaimable(dir *os.File) (g gain) {
	var here, there unix.Stat_t
	known := unix.Fstat(int(dir.Fd()), &here) == nil
	for _, r := range s.kept {
		g.files++
		g.total += r.size
		err := unix.Fstatat(int(r.dir.Fd()), r.name, &there, unix.AT_SYMLINK_NOFOLLOW)
		if known && err == nil && there.Dev == here.Dev {
			g.free += there.Blocks * statBlock
		}
	}
	return g
}

// statBlock is the unit of st_blocks in bytes.
const statBlock = 512

// errFile refuses a file that is too large.
func (s *Store) errFile(size int64) error {
	return fmt.Errorf("%d bytes, and a file has at most %d here (serve --max-file)", size,
		s.MaxFile)
}

// fits reports whether there is room for bytes, of which some are there, and files more, if so much
// more were to be had.
func (s *Store) fits(dir *os.File, size, held int64, files int, more gain) error {
	free, err := s.free(dir)
	if err != nil {
		return err
	}
	free = min(free, math.MaxInt64-more.free) + more.free - s.missing
	total, taken := s.total-more.total, s.files-more.files
	switch {
	case size > s.MaxFile:
		return s.errFile(size)
	case s.MaxTotal > 0 && size > s.MaxTotal-total:
		return fmt.Errorf("%d bytes, and %d more are taken (serve --max-total)", size,
			max(0, s.MaxTotal-total))
	case s.MaxFiles > 0 && files > s.MaxFiles-taken:
		return fmt.Errorf("%d files were taken, and no more are (serve --max-files)", taken)
	case size-held > free:
		return fmt.Errorf("%w: %d bytes, and %d are free for it", unix.ENOSPC, size-held,
			max(0, free))
	}
	return nil
}

// wrote counts bytes of a promise that are in the file.
func (s *Store) wrote(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing -= n
}

// forget takes back a promise of which some bytes were not written.
func (s *Store) forget(size, unwritten int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files--
	s.total -= size
	s.missing -= unwritten
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
