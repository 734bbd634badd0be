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
	for {
		err := s.fits(dir, size, held, 1)
		if err == nil {
			s.files++
			s.total += size
			s.missing += size - held
			return nil
		}
		if !s.dropOldest() {
			return err
		}
	}
}

// extend sets more bytes aside for a file whose size was not known.
func (s *Store) extend(dir *os.File, more, had int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if had > s.MaxFile-more {
		return s.errFile(had + more)
	}
	for {
		err := s.fits(dir, more, 0, 0)
		if err == nil {
			s.total += more
			s.missing += more
			return nil
		}
		if !s.dropOldest() {
			return err
		}
	}
}

// errFile refuses a file that is too large.
func (s *Store) errFile(size int64) error {
	return fmt.Errorf("%d bytes, and a file has at most %d here (serve --max-file)", size,
		s.MaxFile)
}

// fits reports whether there is room for bytes, of which some are there, and files more.
func (s *Store) fits(dir *os.File, size, held int64, files int) error {
	free, err := s.free(dir)
	switch {
	case err != nil:
		return err
	case size > s.MaxFile:
		return s.errFile(size)
	case s.MaxTotal > 0 && size > s.MaxTotal-s.total:
		return fmt.Errorf("%d bytes, and %d more are taken (serve --max-total)", size,
			max(0, s.MaxTotal-s.total))
	case s.MaxFiles > 0 && files > s.MaxFiles-s.files:
		return fmt.Errorf("%d files were taken, and no more are (serve --max-files)", s.files)
	case size-held > free-s.missing:
		return fmt.Errorf("%w: %d bytes, and %d are free for it", unix.ENOSPC, size-held,
			max(0, free-s.missing))
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
