package engine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"xroce/roce"
	"xroce/roce/mem"
)

// RegFile registers n bytes of a file from off on, mapped and shared: what peers write
// is in the file, and other processes that map it see it. With FLUSH_PERSISTENT a FLUSH
// writes the pages back (msync with MS_SYNC), beside the queue. The
// address is that of the mapping, or 0 with ZERO_BASED; off needs no alignment. The
// mapping ends with Deregister or ReregAlloc, whatever Rereg makes of the region before.
//
// The file must be open for writing where LOCAL_WRITE is asked; it may be closed
// afterwards. It may get shorter while it is registered, by whomever: work that comes to
// what is gone is refused as work on other memory that is not there, a FLUSH of it as
// one that failed, and the counter page_gone tells. What is behind the end of the file
// in its last page is still memory, as with every mapping, and of no file. The caller who
// touches what is gone through Bytes gets SIGBUS. No Rereg gives LOCAL_WRITE to a mapping
// that was made without. The error is roce.ErrInvalid when the file has fewer bytes, and
// else that of mmap or RegMR.
func (d *Device) RegFile(pd *PD, f *os.File, off int64, n int, access mem.Access) (*MR, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("engine: registering a file: %w", err)
	}
	if off < 0 || n <= 0 || off > info.Size() || int64(n) > info.Size()-off {
		return nil, fmt.Errorf("%w: %d bytes at %d of %s, which has %d", roce.ErrInvalid, n, off,
			f.Name(), info.Size())
	}
	x, err := mapFile(f, off, n, access&mem.LocalWrite == 0)
	if err != nil {
		return nil, fmt.Errorf("engine: mapping %d bytes at %d of %s: %w", n, off, f.Name(), err)
	}
	m := mem.MemoryOf(x.bytes(), access)
	m.Sync = x.sync
	if m.Guard, err = d.paging.pager.Guard(); err != nil {
		return nil, errors.Join(err, x.unmap())
	}
	mr, err := d.register(pd, m, access)
	if err != nil {
		// The mapping was not given to the caller yet.
		_ = x.unmap()
		return nil, err
	}
	mr.own = ownMemory{whole: x.whole, guard: m.Guard, constant: x.constant, free: x.unmap}
	return mr, nil
}

// A fileMapping is part of a file, mapped.
type fileMapping struct {
	whole    []byte // from the beginning of a page on
	lead     int    // bytes before the part
	end      int64  // of the part in the file
	fd       int    // to ask for its size
	constant bool   // mapped for reading
}

// mapFile maps n bytes of a file from off on.
func mapFile(f *os.File, off int64, n int, constant bool) (*fileMapping, error) {
	protection := unix.PROT_READ
	if !constant {
		protection |= unix.PROT_WRITE
	}
	x := &fileMapping{lead: int(off % int64(os.Getpagesize())), end: off + int64(n)}
	x.constant = constant
	var err error
	if x.fd, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return nil, err
	}
	x.whole, err = unix.Mmap(x.fd, off-int64(x.lead), x.lead+n, protection, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(err, unix.Close(x.fd))
	}
	return x, nil
}

// bytes are those of the part.
func (x *fileMapping) bytes() []byte { return x.whole[x.lead:len(x.whole):len(x.whole)] }

// sync writes part of it back: a mem.Sync. Of a file that ends before that the kernel
// would write back what there is and say nothing.
func (x *fileMapping) sync(off, n int) error {
	// msync wants the beginning of a page; the mapping begins with one.
	page := os.Getpagesize()
	from, to := (x.lead+off)/page*page, x.lead+off+n
	if err := unix.Msync(x.whole[from:to], unix.MS_SYNC); err != nil {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(x.fd, &stat); err != nil {
		return err
	}
	if stat.Size < x.end-int64(len(x.whole)-to) {
		return unix.ENXIO
	}
	return nil
}

// unmap ends the mapping.
func (x *fileMapping) unmap() error {
	return errors.Join(unix.Munmap(x.whole), unix.Close(x.fd))
}
